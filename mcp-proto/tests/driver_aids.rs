//! What the core does for drivers: the inbox, typed answers, failures in plain words.

use std::io;

use mcp_proto::continuation::{InputPolicy, InputRounds, PeerPin, PendingRequest, ResumableMethod};
use mcp_proto::error::{Cause, ErrorKind};
use mcp_proto::identity::{Params, Sha256Hex};
use mcp_proto::types::{CallToolResult, InputRequired, Tool};
use mcp_proto::wire::{Json, Members};
use mcp_proto::{
    Answer, CallOutcome, Client, Config, Ended, Error, Exit, Identity, Inbox, Instant, IoFailure,
    IoKind, Listed, News, Operation, OperationId, Outcome, PeerConfig, PendingInput,
    ProgressUpdate, Reply, Version,
};

const NOW: Instant = Instant::ZERO;

/// A client whose one peer never settles, so that operations stay open.
fn client() -> Client {
    let config = Config::new(vec![PeerConfig::stream("a")]);
    let pinned = config.pin(&mut |_| None, &mut |_| None);
    Client::new(pinned, Identity::default(), NOW)
}

fn ended(operation: OperationId, outcome: Outcome) -> Ended {
    Ended {
        operation,
        peer: None,
        tool: None,
        outcome,
    }
}

fn end(operation: OperationId) -> News {
    let outcome = Outcome::Complete(Reply::Settled);
    News::Ended(Box::new(ended(operation, outcome)))
}

/// R42: the newest 64 reports in their order, before and after the end, which is given out once.
#[test]
fn progress_is_kept_in_order_and_bounded() {
    let (mut core, mut inbox) = (client(), Inbox::<u8>::default());
    let id = inbox
        .submit(&mut core, Operation::list_tools(), NOW)
        .unwrap();
    *inbox.waiter(id).unwrap() = 7;
    for number in 0..70 {
        let progress = ProgressUpdate::new(f64::from(number));
        let news = News::Progress {
            operation: id,
            progress,
        };
        assert_eq!(inbox.deliver(news).copied(), Some(7));
    }
    assert_eq!(inbox.take_progress(id).map(|next| next.progress), Some(6.0));
    assert!(!inbox.is_over(id) && inbox.take_ended(id).is_none());
    assert_eq!(inbox.deliver(end(id)).copied(), Some(7));
    assert!(inbox.is_over(id));
    let rest: Vec<f64> = std::iter::from_fn(|| inbox.take_progress(id))
        .map(|next| next.progress)
        .collect();
    assert_eq!(rest, (7..70).map(f64::from).collect::<Vec<_>>());
    assert_eq!(inbox.take_ended(id).map(|ended| ended.operation), Some(id));
    assert_eq!(inbox.take_ended(id), None);
}

#[test]
fn what_was_let_go_of_is_cancelled_and_gets_no_news() {
    let (mut core, mut inbox) = (client(), Inbox::<u8>::default());
    let mut submit = |inbox: &mut Inbox<u8>, operation| inbox.submit(&mut core, operation, NOW);
    let list = submit(&mut inbox, Operation::list_tools()).unwrap();
    let listen = submit(&mut inbox, Operation::listen(None)).unwrap();
    let done = submit(&mut inbox, Operation::list_prompts()).unwrap();
    assert!(submit(&mut inbox, Operation::listen(Some("nobody"))).is_err());
    assert_eq!(inbox.awaited(), 2, "one that listens awaits no answer");
    inbox.deliver(end(done));
    assert_eq!(inbox.awaited(), 1);
    let open: Vec<_> = inbox.open().map(|(id, _)| id).collect();
    assert_eq!(open, [list, listen]);

    for (id, cancels) in [(list, true), (listen, true), (done, false), (done, false)] {
        inbox.release(&mut core, id, NOW);
        let mut cancelled = Vec::new();
        while let Some(action) = core.poll_action() {
            let mcp_proto::Action::Deliver(news) = action else {
                continue;
            };
            if let News::Ended(ended) = &news {
                let Outcome::Failed(error) = &ended.outcome else {
                    panic!("{ended:?}");
                };
                assert_eq!(error.kind(), ErrorKind::Cancelled);
                cancelled.push(ended.operation);
            }
            assert_eq!(inbox.deliver(news), None);
        }
        assert_eq!(cancelled, Vec::from_iter(cancels.then_some(id)));
        assert!(inbox.is_over(id) && inbox.waiter(id).is_none());
    }
    assert_eq!(inbox.awaited(), 0);
    assert_eq!(inbox.deliver(News::Closed), None);
}

/// R30: a request for input is an answer only where it can be one.
#[test]
fn outcomes_are_what_was_asked_for_or_an_error() {
    let id = OperationId::new(1);
    let of = |outcome: &Outcome| ended(id, outcome.clone());
    let kind = |result: Result<(), Error>| result.map_err(|error| error.kind());

    let counted = Outcome::Complete(Reply::Listened { notifications: 3 });
    assert_eq!(u64::from_ended(of(&counted)), Ok(3));
    assert_eq!(kind(<()>::from_ended(of(&counted))), Err(ErrorKind::Usage));
    let tools = Outcome::Complete(Reply::Tools(Vec::new()));
    assert_eq!(Vec::<Listed<Tool>>::from_ended(of(&tools)), Ok(Vec::new()));
    let other = CallOutcome::<CallToolResult>::from_ended(of(&tools));
    assert!(matches!(other, Err(error) if error.kind() == ErrorKind::Usage));

    let asks = Outcome::InputRequired(pending_input());
    let asked = CallOutcome::<CallToolResult>::from_ended(of(&asks));
    assert_eq!(asked, Ok(CallOutcome::InputRequired(pending_input())));
    let refused = CallToolResult::from_ended(of(&asks));
    assert!(matches!(refused, Err(error) if error.kind() == ErrorKind::Usage));

    let error = Error::new("a", Cause::Cancelled);
    let failed = Outcome::Failed(error.clone());
    assert_eq!(u64::from_ended(of(&failed)), Err(error.clone()));
    assert_eq!(CallOutcome::<()>::from_ended(of(&failed)), Err(error));
}

/// A call that its server answered with a state alone.
fn pending_input() -> PendingInput {
    let pin = PeerPin {
        peer: "a".into(),
        version: Version::LATEST,
        endpoint: Sha256Hex::of(b"a"),
    };
    let (params, _) = Params::parse(&Json::parse(r#"{"name":"t"}"#).unwrap()).unwrap();
    let request = PendingRequest::new(pin, ResumableMethod::CallTool, params);
    let mut rounds = InputRounds::new(InputPolicy::default(), request);
    let input = InputRequired::read(&Members::parse(r#"{"requestState":"s"}"#).unwrap()).unwrap();
    rounds.required(input.clone(), Instant::ZERO).unwrap();
    let continuation = rounds.continuation().unwrap();
    PendingInput {
        input,
        continuation,
    }
}

/// R3: the operating system's words are told; those of an application's stream are not.
#[test]
fn failures_of_the_machine_are_told_in_plain_words() {
    let missing = io::Error::from_raw_os_error(2); // ENOENT
    let failure = IoFailure::from(&missing);
    assert_eq!(failure.kind, IoKind::NotFound);
    assert_eq!(failure.detail, missing.to_string());

    let leaky = io::Error::new(io::ErrorKind::ConnectionReset, "token hunter2 refused");
    let failure = IoFailure::from(leaky);
    assert_eq!(failure.kind, IoKind::BrokenPipe);
    assert_eq!(failure.detail, "connection reset");

    for (kind, expected) in [
        (io::ErrorKind::PermissionDenied, IoKind::PermissionDenied),
        (io::ErrorKind::BrokenPipe, IoKind::BrokenPipe),
        (io::ErrorKind::WriteZero, IoKind::BrokenPipe),
        (io::ErrorKind::TimedOut, IoKind::Other),
    ] {
        assert_eq!(IoKind::from(kind), expected);
    }
    assert_eq!(IoFailure::no_stream().kind, IoKind::NotFound);
    assert_eq!(Exit::of(Some(0), None), Exit::Code(0));
    assert_eq!(Exit::of(None, Some(9)), Exit::Signal(9));
    assert_eq!(Exit::of(None, None), Exit::Unknown);
}
