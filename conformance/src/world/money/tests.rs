use mcp_proto::{Identity, IoFailure, IoKind, Options};

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

/// The same with a ledger, which is asked for at the beginning.
fn books_with_ledger(budget: Option<u64>) -> Books {
    let mut books = books(budget);
    books.prior = None;
    books.on_ledger_wanted(Instant::ZERO);
    books
}

/// The client reads this, a piece at a time, and that is all.
fn read(books: &mut Books, contents: &[u8], last: &Event<'_>) {
    for bytes in contents.chunks(7) {
        books.on_fact(&Event::LedgerRead { bytes }, Instant::ZERO);
    }
    books.on_fact(last, Instant::ZERO);
}

fn failed() -> Event<'static> {
    let failure = IoFailure {
        kind: IoKind::Other,
        detail: "torn".into(),
    };
    Event::LedgerFailed { failure }
}

const DOLLAR: &[u8] = b"{\"task\":\"default\",\"usd\":1}\n";

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
    Client::new(pinned, Identity::default(), Instant::ZERO)
}

/// What may have run is charged, once, at its own price or the configured one; sums that differ are a breach.
#[test]
fn sums_that_differ_are_a_breach() {
    let mut books = books(None);
    for (number, cost) in [(1, None), (2, None), (3, Some(2.0))] {
        books.on_accepted(id(number), &call(cost));
    }
    books.on_accepted(id(4), &Operation::list_tools());
    books.on_ended(&ended(1, Ran::No)).unwrap();
    assert!(books.check(&client()).is_ok(), "nothing ran");
    for _ in 0..2 {
        books.on_ended(&ended(2, Ran::Maybe)).unwrap();
        books.on_ended(&ended(4, Ran::Maybe)).unwrap();
    }
    books.on_ended(&ended(3, Ran::Maybe)).unwrap();
    assert_eq!(books.charged(), (2, 5 * HALF));
    let breach = books.check(&client()).unwrap_err();
    assert_eq!(breach.0, Rule::Money);
}

/// What stood in the ledger is in its sums, for this task and where it is whole.
#[test]
fn what_was_spent_before_counts() {
    let mut books = books_with_ledger(None);
    let foreign = b"{\"task\":\"other\",\"usd\":9}\n{\"task\":\"default\",\"usd\":-1}\n{\"ta";
    read(&mut books, foreign, &Event::LedgerEnded);
    assert!(books.check(&client()).is_ok());
    let mut books = books_with_ledger(None);
    read(
        &mut books,
        b"\n{\"task\":\"default\",\"usd\":0.5}",
        &Event::LedgerEnded,
    );
    assert_eq!(books.prior, Some(HALF));
    assert!(books.check(&client()).is_err(), "the client knows of none");
}

/// The sums are compared as well where there is no ledger, where it cannot be read, and where reading fails.
#[test]
fn a_ledger_that_fails_excuses_no_sum() {
    assert_eq!(books(None).prior, Some(0), "there is none");
    let mut unreadable = books_with_ledger(None);
    read(&mut unreadable, b"", &failed());
    assert_eq!(unreadable.prior, Some(0));
    let mut torn = books_with_ledger(None);
    read(&mut torn, &[DOLLAR, &DOLLAR[..9]].concat(), &failed());
    assert_eq!(torn.prior, Some(2 * HALF));
    assert!(torn.check(&client()).is_err(), "the client knows of none");
    // What fails later is an append.
    read(&mut torn, DOLLAR, &failed());
    assert_eq!(torn.prior, Some(2 * HALF));
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
    books.on_ended(&ended(3, Ran::No)).unwrap();
    books.on_ended(&ended(2, Ran::No)).unwrap();
    assert!(
        books.on_called(id(4), 0, "t").is_ok(),
        "a place is free again"
    );
    for number in [1, 4] {
        books.on_ended(&ended(number, Ran::Maybe)).unwrap();
    }
    books.on_accepted(id(5), &call(None));
    books.on_accepted(id(6), &call(Some(0.0)));
    assert!(books.on_called(id(5), 0, "t").is_err(), "all is spent");
    assert!(books.on_called(id(6), 0, "t").is_ok(), "it is free");
}

/// What stood in the ledger is part of it, for calls that waited for that too.
#[test]
fn the_budget_includes_what_was_spent_before() {
    for (budget, last) in [
        (2, Event::LedgerEnded),
        (2, failed()),
        (3, Event::LedgerEnded),
    ] {
        let mut books = books_with_ledger(Some(budget));
        books.on_accepted(id(1), &call(None));
        books.on_accepted(id(2), &call(Some(0.0)));
        read(&mut books, DOLLAR, &last);
        books.on_accepted(id(3), &call(None));
        let fits = budget == 3;
        assert_eq!(books.on_called(id(1), 0, "t").is_ok(), fits, "{budget}");
        assert!(books.on_called(id(2), 0, "t").is_ok(), "it is free");
        assert!(books.on_called(id(3), 0, "t").is_err());
    }
    // Without a price it only has to have begun within the budget.
    for (budget, fits) in [(2, false), (3, true)] {
        let mut books = books_with_ledger(Some(budget));
        books.peers[0].cost = None;
        books.on_accepted(id(1), &call(None));
        read(&mut books, DOLLAR, &Event::LedgerEnded);
        assert_eq!(books.on_called(id(1), 0, "t").is_ok(), fits, "{budget}");
    }
}

/// Before it is known what was spent nothing is sent, and only what may have been let go for want of patience is
/// excused.
#[test]
fn a_call_that_does_not_wait_for_the_ledger_is_a_breach() {
    let early = Instant::ZERO + Duration::from_millis(1_999);
    let late = Instant::ZERO + PATIENCE;
    let mut books = books_with_ledger(Some(2));
    for number in 1..=4 {
        books.on_accepted(id(number), &call(None));
    }
    books.on_fact(&Event::TimePassed, early);
    assert!(books.on_called(id(1), 0, "t").is_err(), "it is early");
    books.on_ended(&ended(1, Ran::No)).unwrap();
    books.on_fact(&Event::LedgerRead { bytes: b"\n" }, late);
    assert!(books.on_called(id(2), 0, "t").is_err(), "it did not wait");
    books.on_ended(&ended(2, Ran::No)).unwrap();
    books.on_fact(&Event::TimePassed, late);
    assert!(books.on_called(id(3), 0, "t").is_ok());
    read(&mut books, DOLLAR, &Event::LedgerEnded);
    assert!(books.on_called(id(4), 0, "t").is_ok(), "it was on its way");
    books.on_accepted(id(5), &call(None));
    assert!(books.on_called(id(5), 0, "t").is_err());
}

/// What certainly fits is not refused because of the budget.
#[test]
fn refusing_what_fits_is_a_breach() {
    let refusal = || {
        Error::new(
            "a",
            Cause::Limit {
                what: "spending".into(),
                setting: "budgetUsd",
                max: 4 * HALF,
            },
        )
    };
    let refused = |number| Ended {
        outcome: Outcome::Failed(refusal()),
        ..ended(number, Ran::No)
    };
    let mut books = books_with_ledger(Some(4));
    for number in 1..=2 {
        books.on_accepted(id(number), &call(None));
    }
    assert!(books.on_refused(&call(None), &refusal()).is_err());
    read(&mut books, DOLLAR, &Event::LedgerEnded);
    assert!(books.on_refused(&call(None), &refusal()).is_ok());
    assert!(books.on_refused(&call(Some(0.0)), &refusal()).is_err());
    assert!(books.on_ended(&refused(1)).is_err(), "the other one is all");
    books.on_accepted(id(3), &call(Some(0.75)));
    assert!(books.on_ended(&refused(3)).is_ok());
}
