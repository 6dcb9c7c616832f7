use mcp_proto::error::Cause;
use mcp_proto::{Error, Identity, Options};

use super::*;

const HALF: u64 = 500_000_000;

/// One peer whose calls cost half a dollar, and a budget of so many halves.
fn books(budget: Option<u64>) -> Books {
    let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
    peer.cost = Some(NanoUsd::from_nanos(HALF));
    let mut config = Config::new(vec![peer]);
    config.harness.budget = budget.map(|halves| NanoUsd::from_nanos(halves * HALF));
    Books::new(&config)
}

fn call(cost: Option<f64>) -> Operation {
    Operation::call("t", None).with(Options {
        cost: cost.map(Into::into),
        ..Options::default()
    })
}

fn id(number: u64) -> OperationId {
    OperationId::new(number)
}

fn ended(number: u64, ran: Ran) -> Ended {
    Ended {
        operation: id(number),
        peer: Some("a".into()),
        tool: Some("t".into()),
        outcome: Outcome::Failed(Error::new("a", Cause::Cancelled).ran(ran)),
    }
}

fn client() -> Client {
    let pinned = Config::new(Vec::new()).pin(&mut |_| None, &mut |_| None);
    Client::new(pinned, Identity::default(), mcp_proto::Instant::ZERO)
}

/// What may have run is charged, once, at its own price or the configured one; sums that differ are a breach.
#[test]
fn sums_that_differ_are_a_breach() {
    let mut books = books(None);
    for (number, cost) in [(1, None), (2, None), (3, Some(2.0))] {
        books.on_accepted(id(number), &call(cost));
    }
    books.on_accepted(id(4), &Operation::list_tools());
    books.on_ended(&ended(1, Ran::No));
    assert!(books.check(&client()).is_ok(), "nothing ran");
    for _ in 0..2 {
        books.on_ended(&ended(2, Ran::Maybe));
        books.on_ended(&ended(4, Ran::Maybe));
    }
    books.on_ended(&ended(3, Ran::Maybe));
    assert_eq!(books.charged(), (2, 5 * HALF));
    let breach = books.check(&client()).unwrap_err();
    assert_eq!(breach.0, Rule::Money);
}

/// What stood in the ledger is in its sums, for this task and where it is whole.
#[test]
fn what_was_spent_before_counts() {
    let mut books = books(None);
    books.on_ledger_read(
        b"{\"task\":\"other\",\"usd\":9}\n{\"task\":\"default\",\"usd\":-1}\n{\"ta",
    );
    assert!(books.check(&client()).is_ok());
    books.on_ledger_read(b"\n{\"task\":\"default\",\"usd\":0.5}");
    assert_eq!(books.prior, Some(HALF));
    assert!(books.check(&client()).is_err(), "the client knows of none");
}

/// What does not fit beside the calls under way is not sent, nor is anything that costs when all is spent.
#[test]
fn sending_beyond_the_budget_is_a_breach() {
    let mut books = books(Some(2));
    for number in 1..=4 {
        books.on_accepted(id(number), &call(None));
    }
    assert!(books.on_called(id(1), 0, "t").is_ok());
    assert!(books.on_called(id(1), 0, "t").is_ok(), "the same once more");
    assert!(books.on_called(id(2), 0, "t").is_ok());
    let breach = books.on_called(id(3), 0, "t").unwrap_err();
    assert_eq!(breach.0, Rule::Money);
    books.on_ended(&ended(3, Ran::No));
    books.on_ended(&ended(2, Ran::No));
    assert!(
        books.on_called(id(4), 0, "t").is_ok(),
        "a place is free again"
    );
    for number in [1, 4] {
        books.on_ended(&ended(number, Ran::Maybe));
    }
    books.on_accepted(id(5), &call(None));
    books.on_accepted(id(6), &call(Some(0.0)));
    assert!(books.on_called(id(5), 0, "t").is_err(), "all is spent");
    assert!(books.on_called(id(6), 0, "t").is_ok(), "it is free");
}

/// What stood in the ledger is part of it, for what was submitted when that was known.
#[test]
fn the_budget_includes_what_was_spent_before() {
    let mut books = books(Some(2));
    books.on_accepted(id(1), &call(None));
    books.on_ledger_read(b"{\"task\":\"default\",\"usd\":1}\n");
    books.on_accepted(id(2), &call(None));
    assert!(books.on_called(id(1), 0, "t").is_ok());
    assert!(books.on_called(id(2), 0, "t").is_err());
}
