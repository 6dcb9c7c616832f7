//! Calls that need input, fact by fact (R30, R31, R41).

mod hand;

use hand::{Hand, methods};
use mcp_proto::continuation::Continuation;
use mcp_proto::types::{InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{
    Duration, ErrorKind, Event, Exit, Identity, Operation, OperationId, Options, Outcome,
    PendingInput, Ran, Violation,
};
use serde_json::Value;

/// Asks for a form under `k`, with a state whose text is not the only way to write it.
const ASKS: &str = r#""resultType":"input_required","requestState":"\u0041\/é","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}"#;
const WAITS: &str = r#""resultType":"input_required","requestState":"later""#;
const DONE: &str = r#""resultType":"complete","content":[{"type":"text","text":"hi"}]"#;

fn identity() -> Identity {
    let json = |text: &str| Json::parse(text).unwrap();
    let info = json(r#"{"name":"t","version":"1"}"#);
    Identity::new(info, json(r#"{"elicitation":{}}"#)).unwrap()
}

fn hand() -> Hand {
    let mut hand = Hand::with(identity(), |peer| peer.limits.input_rounds = 3);
    hand.introduce(1);
    hand
}

fn call(interactive: bool) -> Operation {
    let call = Operation::call("echo", Json::parse(r#"{"n":1.00}"#).ok()).on("srv");
    call.with(Options {
        interactive,
        meta: Json::parse(r#"{"example.com/a":1}"#).ok(),
        ..Options::default()
    })
}

fn ada() -> InputResponses {
    let json = Json::parse(r#"{"action":"accept","content":{"name":"Ada"}}"#).unwrap();
    InputResponses::new().with("k", InputResponse::raw(json))
}

/// Everything that is written is done at once; the answer to the last request.
fn answer(hand: &mut Hand, id: &Value, result: &str) -> Vec<Value> {
    let mut sent = hand.written();
    sent.extend(hand.say(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result}}}}}"#
    )));
    sent
}

fn pending(hand: &Hand) -> &PendingInput {
    match &hand.ended.last().unwrap().outcome {
        Outcome::InputRequired(pending) => pending,
        other => panic!("{other:?}"),
    }
}

/// The parameters of the first call with what was asked added, `_meta` aside.
fn is_second_round(first: &Value, second: &Value) {
    assert_eq!(second["method"], "tools/call");
    assert_eq!(first["params"]["_meta"], second["params"]["_meta"]);
    let mut params = second["params"].clone();
    let params = params.as_object_mut().unwrap();
    assert_eq!(params.remove("requestState").unwrap(), "A/é");
    assert_eq!(
        params.remove("inputResponses").unwrap().to_string(),
        r#"{"k":{"action":"accept","content":{"name":"Ada"}}}"#
    );
    assert_eq!(Value::from(params.clone()), first["params"]);
}

/// R30, R41: the call stays open, its deadlines stand still, a wrong answer leaves the question open, and the
/// right one goes with the original parameters under a new id and the same `_meta` (R7).
#[test]
fn an_interactive_call_goes_on_with_its_answer() {
    let mut hand = hand();
    let first = hand.submit(call(true)).remove(0);
    answer(&mut hand, &first["id"], ASKS);
    assert_eq!((hand.asked.len(), hand.ended.len()), (1, 0));
    hand.wait(Duration::from_secs(100_000));
    assert!(hand.ended.is_empty());

    let operation = OperationId::new(1);
    let wrong = InputResponses::new().with("other", InputResponse::decline());
    let error = hand.reply(operation, &wrong).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    hand.reply(operation, &ada()).unwrap();
    let second = hand.drain().remove(0);
    is_second_round(&first, &second);
    assert_ne!(first["id"], second["id"]);
    let again = hand.reply(operation, &ada());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Usage);

    // The time that the application took does not count; the server's does.
    hand.written();
    hand.wait(Duration::from_secs(59));
    assert!(hand.ended.is_empty());
    answer(&mut hand, &second["id"], DONE);
    assert!(matches!(hand.ended[0].outcome, Outcome::Complete(_)));
}

/// R31: what a call ended with is taken up by another client, from its serialized form; it is the same call
/// (R7). One that is configured otherwise refuses, and sends nothing.
#[test]
fn another_client_takes_it_up() {
    let mut here = hand();
    let first = here.submit(call(false)).remove(0);
    answer(&mut here, &first["id"], ASKS);
    let stored = pending(&here).continuation.to_json();
    let taken_up = || Continuation::from_json(&stored).unwrap();

    let mut there = hand();
    let second = there.submit(Operation::resume(taken_up(), ada())).remove(0);
    is_second_round(&first, &second);
    answer(&mut there, &second["id"], DONE);
    let ended = &there.ended[0];
    assert!(matches!(ended.outcome, Outcome::Complete(_)));
    assert_eq!(ended.tool.as_deref(), Some("echo"));

    let mut other = Hand::with(identity(), |peer| peer.auth_context = Some("bob".into()));
    other.introduce(1);
    assert!(
        other
            .submit(Operation::resume(taken_up(), ada()))
            .is_empty()
    );
    assert_eq!(other.last_error().unwrap().0, ErrorKind::Usage);
    // The answers are judged before anything is sent, too.
    let none = InputResponses::new();
    assert!(there.submit(Operation::resume(taken_up(), none)).is_empty());
    assert_eq!(there.last_error().unwrap().0, ErrorKind::Usage);
    // R20: nor is a tool called that is not there any more.
    let mut bare = Hand::with(identity(), |_| {});
    bare.say(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    bare.written();
    bare.say(r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}"#);
    bare.written();
    assert!(bare.submit(Operation::resume(taken_up(), ada())).is_empty());
    assert_eq!(bare.last_error().unwrap().0, ErrorKind::CapabilityMissing);
}

/// R31, R20: a peer whose first listing failed lists again before it takes a call up, and then does.
#[test]
fn it_is_taken_up_where_the_first_listing_failed() {
    let mut here = hand();
    let first = here.submit(call(false)).remove(0);
    answer(&mut here, &first["id"], ASKS);
    let continuation = pending(&here).continuation.clone();

    let mut there = Hand::with(identity(), |_| {});
    there.say(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    there.written();
    there.say(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"not yet"}}"#);
    there.written();
    let list = there
        .submit(Operation::resume(continuation, ada()))
        .remove(0);
    assert_eq!(list["method"], "tools/list");
    let second = answer(
        &mut there,
        &list["id"],
        r#""resultType":"complete","tools":[{"name":"echo","inputSchema":{}}]"#,
    );
    is_second_round(&first, &second[0]);
}

/// R30: a state alone is sent again by itself after a pause, and rounds are limited, also over several
/// clients.
#[test]
fn rounds_are_counted() {
    let mut hand = hand();
    let mut request = hand.submit(call(false)).remove(0);
    for _ in 0..3 {
        answer(&mut hand, &request["id"], WAITS);
        assert!(hand.ended.is_empty());
        let due = hand.client.poll_timeout().unwrap().since(hand.now);
        assert!(due >= Duration::from_millis(250), "{due:?}");
        request = hand.wait(due).remove(0);
        assert_eq!(request["params"]["requestState"], "later");
    }
    answer(&mut hand, &request["id"], WAITS);
    assert_eq!(hand.last_error(), Some((ErrorKind::Limit, Ran::Maybe)));

    let mut request = hand.submit(call(false)).remove(0);
    for round in 1..=3 {
        answer(&mut hand, &request["id"], ASKS);
        let continuation = pending(&hand).continuation.clone();
        assert_eq!(continuation.rounds(), round);
        request = hand
            .submit(Operation::resume(continuation, ada()))
            .remove(0);
    }
    answer(&mut hand, &request["id"], ASKS);
    assert_eq!(hand.last_error(), Some((ErrorKind::Limit, Ran::Maybe)));
}

/// R30, R40: an application that does not answer gets the question as the outcome, or cancels; either way
/// the call has begun.
#[test]
fn it_can_be_left_unanswered() {
    let mut hand = hand();
    let first = hand.submit(call(true)).remove(0);
    answer(&mut hand, &first["id"], ASKS);
    hand.client.finish(OperationId::new(1), hand.now);
    assert!(hand.drain().is_empty());
    assert_eq!(pending(&hand).input.requests.len(), 1);

    let second = hand.submit(call(true)).remove(0);
    answer(&mut hand, &second["id"], ASKS);
    hand.client.cancel(OperationId::new(2), hand.now);
    assert!(methods(&hand.drain()).is_empty());
    assert_eq!(hand.last_error(), Some((ErrorKind::Cancelled, Ran::Maybe)));
}

/// R30, R60: what was not declared must not be asked for.
#[test]
fn undeclared_input_is_a_violation() {
    let mut hand = hand();
    let first = hand.submit(call(true)).remove(0);
    let roots = r#""resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}"#;
    answer(&mut hand, &first["id"], roots);
    assert!(hand.asked.is_empty());
    assert_eq!(
        hand.last_error(),
        Some((ErrorKind::SchemaViolation, Ran::Maybe))
    );
    let fault = hand.client.peers().next().unwrap().degraded().unwrap();
    assert_eq!(fault.violation, Violation::InputNotDeclared);
}

/// R30, R90: a question outlives its server; the answer goes to the next life of it.
#[test]
fn a_question_outlives_its_server() {
    let mut hand = hand();
    let first = hand.submit(call(true)).remove(0);
    answer(&mut hand, &first["id"], ASKS);
    let link = hand.link;
    hand.tell(Event::LinkStderrEnded { link });
    hand.tell(Event::LinkEnded { link });
    hand.tell(Event::LinkExited {
        link,
        exit: Exit::Code(1),
    });
    assert!(hand.ended.is_empty());
    hand.reply(OperationId::new(1), &ada()).unwrap();
    let due = hand.client.poll_timeout().unwrap().since(hand.now);
    hand.wait(due);
    assert_eq!(hand.link.serial, 2);
    let link = hand.link;
    let probe = hand.tell(Event::LinkOpened { link }).remove(0);
    let id = probe["id"].as_u64().unwrap();
    hand.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}"#));
    hand.written();
    let id = id + 1;
    hand.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"echo","inputSchema":{{}}}}]}}}}"#));
    let second = hand.written().remove(0);
    is_second_round(&first, &second);
}

/// R30: calls that wait at the same time get their own answers and states.
#[test]
fn parallel_questions_keep_apart() {
    let mut hand = hand();
    let first = hand.submit(call(true)).remove(0);
    hand.written();
    let second = hand.submit(call(true)).remove(0);
    answer(&mut hand, &second["id"], ASKS);
    answer(&mut hand, &first["id"], WAITS);
    hand.reply(OperationId::new(2), &ada()).unwrap();
    is_second_round(&second, &hand.drain()[0]);
    hand.written();
    let due = hand.client.poll_timeout().unwrap().since(hand.now);
    let again = hand.wait(due).remove(0);
    assert_eq!(again["params"]["requestState"], "later");
    assert!(again["params"].get("inputResponses").is_none());
    assert_eq!(again["params"]["_meta"], first["params"]["_meta"]);
}

/// An older server with the tool `echo`, allow-listed, that may ask.
fn older(answers: bool) -> (Hand, Value) {
    let mut hand = Hand::with(identity().answering(answers), |peer| {
        peer.allow_legacy = true
    });
    hand.say(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}"#);
    let handshake = hand.written().remove(0);
    hand.written();
    hand.say(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}"#);
    hand.say(r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo","inputSchema":{}}]}}"#);
    hand.written();
    (hand, handshake["params"]["capabilities"].clone())
}

const FORM: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#;

fn asked_ada() -> InputResponses {
    let json = Json::parse(r#"{"action":"accept","content":{"name":"Ada"}}"#).unwrap();
    InputResponses::new().with("request", InputResponse::raw(json))
}

/// R30, R60: a server of an older revision asks in the middle of a call; it is the call's question, and the
/// answer goes back as a response. The deadlines stand still.
#[test]
fn an_older_server_asks_in_the_middle_of_a_call() {
    let (mut hand, declared) = older(true);
    assert_eq!(declared.to_string(), r#"{"elicitation":{}}"#);
    let first = hand.submit(call(true)).remove(0);
    hand.written();
    hand.say(FORM);
    assert_eq!(hand.asked[0].requests[0].prompt(), "Name?");
    hand.wait(Duration::from_secs(100_000));
    assert!(hand.ended.is_empty());

    let operation = OperationId::new(1);
    let wrong = InputResponses::new();
    assert!(hand.reply(operation, &wrong).is_err());
    hand.reply(operation, &asked_ada()).unwrap();
    assert_eq!(
        hand.drain()[0].to_string(),
        r#"{"id":"q","jsonrpc":"2.0","result":{"action":"accept","content":{"name":"Ada"}}}"#
    );
    hand.wait(Duration::from_secs(59));
    answer(&mut hand, &first["id"], r#""content":[]"#);
    assert!(matches!(hand.ended[0].outcome, Outcome::Complete(_)));
}

/// R60: what nobody answers is answered all the same: when nobody can, when nothing is under way, when what is
/// asked makes no sense, and when the application lets go.
#[test]
fn an_older_server_is_never_left_waiting() {
    let (mut hand, declared) = older(false);
    assert_eq!(declared.to_string(), "{}");
    assert_eq!(hand.say(FORM)[0]["error"]["code"], -32601);

    let cancelled = r#"{"action":"cancel"}"#;
    let (mut hand, _) = older(true);
    assert_eq!(hand.say(FORM)[0]["result"].to_string(), cancelled);
    hand.written();
    hand.submit(call(true));
    hand.written();
    let nonsense = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#;
    assert_eq!(hand.say(nonsense)[0]["error"]["code"], -32602);
    hand.written();
    hand.say(FORM);
    assert_eq!(
        hand.say(FORM)[0]["result"].to_string(),
        cancelled,
        "one at a time"
    );
    hand.written();
    let operation = OperationId::new(1);
    hand.client.finish(operation, hand.now);
    assert_eq!(hand.drain()[0]["result"].to_string(), cancelled);
    hand.written();
    hand.say(FORM);
    hand.client.cancel(operation, hand.now);
    let sent = hand.drain();
    assert_eq!(methods(&sent), ["notifications/cancelled"]);
    assert!(
        sent.iter()
            .any(|message| message["result"]["action"] == "cancel")
    );
    assert_eq!(hand.last_error(), Some((ErrorKind::Cancelled, Ran::Maybe)));
}

/// R41: after the answer the clock runs again, and its deadline counts among many others.
#[test]
fn the_deadline_after_an_answer_is_not_missed() {
    let mut hand = hand();
    let mut brief = call(true);
    brief.options.idle_timeout = Some(Duration::from_secs(1));
    let first = hand.submit(brief).remove(0);
    answer(&mut hand, &first["id"], ASKS);
    for _ in 0..20 {
        hand.submit(call(false));
    }
    hand.reply(OperationId::new(1), &ada()).unwrap();
    hand.drain();
    let due = hand.client.poll_timeout().unwrap().since(hand.now);
    assert!(due <= Duration::from_secs(1), "{due:?}");
}

/// R42, R90: a call that is sent again reports from its beginning: that is a sign of life, and no news.
#[test]
fn progress_of_a_later_request_keeps_it_alive() {
    let mut hand = Hand::with(identity(), |peer| {
        peer.idempotent_tools.insert("echo".into());
    });
    hand.introduce(1);
    hand.echo();
    hand.written();
    let report = |hand: &mut Hand, progress: u32| {
        hand.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{progress}}}}}"#
        ));
    };
    report(&mut hand, 5);
    assert_eq!(hand.progress, 1);
    let link = hand.link;
    hand.tell(Event::LinkStderrEnded { link });
    hand.tell(Event::LinkEnded { link });
    hand.tell(Event::LinkExited {
        link,
        exit: Exit::Code(1),
    });
    let due = hand.client.poll_timeout().unwrap().since(hand.now);
    hand.wait(due);
    let link = hand.link;
    let probe = hand.tell(Event::LinkOpened { link }).remove(0);
    hand.introduce(probe["id"].as_u64().unwrap());
    hand.written();
    for progress in 1..=3 {
        hand.wait(Duration::from_secs(50));
        report(&mut hand, progress);
        assert!(hand.ended.is_empty(), "{:?}", hand.ended);
    }
    assert_eq!(hand.progress, 1, "nothing beyond 5 was reported");
}

/// R41, R90: a question of an older server dies with it; what goes on has its deadlines again.
#[test]
fn a_question_of_a_dead_older_server_holds_up_nothing() {
    let (mut hand, _) = older(true);
    hand.submit(call(true));
    hand.written();
    hand.say(FORM);
    assert_eq!(hand.asked.len(), 1);
    let link = hand.link;
    hand.tell(Event::LinkStderrEnded { link });
    hand.tell(Event::LinkEnded { link });
    hand.tell(Event::LinkExited {
        link,
        exit: Exit::Code(1),
    });
    assert_eq!(hand.last_error(), Some((ErrorKind::Closed, Ran::Maybe)));
    let late = hand.reply(OperationId::new(1), &asked_ada());
    assert!(late.is_err());
}

/// R30, R60: a question that an older server takes back is void: nothing is answered, and what is said about it
/// is never taken for the answer to the next one, which looks the same.
#[test]
fn a_question_that_was_taken_back_is_answered_no_more() {
    let (mut hand, _) = older(true);
    hand.submit(call(true));
    hand.written();
    hand.say(FORM);
    let (operation, first) = (OperationId::new(1), hand.question);
    let back = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
    assert!(hand.say(back).is_empty());
    assert!(hand.reply(operation, &asked_ada()).is_err());

    assert!(hand.say(&FORM.replace("\"q\"", "\"r\"")).is_empty());
    assert_ne!(hand.question, first);
    let now = hand.now;
    hand.client.reply(operation, first, Some(&asked_ada()), now);
    assert_eq!((hand.drain(), hand.ended.len()), (Vec::new(), 0));
    let second = hand.question;
    hand.client
        .reply(operation, second, Some(&asked_ada()), now);
    assert_eq!(hand.drain()[0]["id"], "r");

    // Taken back with nothing else said, the server has its deadline again.
    hand.written();
    hand.say(&FORM.replace("\"q\"", "\"s\""));
    hand.wait(Duration::from_secs(1000));
    hand.say(&back.replace("\"q\"", "\"s\""));
    hand.wait(Duration::from_secs(61));
    assert_eq!(hand.last_error(), Some((ErrorKind::Timeout, Ran::Maybe)));
}

/// R30: whatever a handler says is the end of its question: no answer ends the call with what was asked, and one
/// that does not fit ends it as misused, with the word that the server has begun. A call in whose middle an older
/// server asks goes on without an answer.
#[test]
fn whatever_a_handler_says_ends_its_question() {
    let wrong = InputResponses::new().with("other", InputResponse::decline());
    for said in [None, Some(wrong)] {
        let mut hand = hand();
        let first = hand.submit(call(true)).remove(0);
        answer(&mut hand, &first["id"], ASKS);
        let (operation, question, now) = (OperationId::new(1), hand.question, hand.now);
        hand.client.reply(operation, question, said.as_ref(), now);
        assert!(hand.drain().is_empty());
        match said {
            None => assert!(matches!(hand.ended[0].outcome, Outcome::InputRequired(_))),
            Some(_) => assert_eq!(hand.last_error(), Some((ErrorKind::Usage, Ran::Maybe))),
        }
        hand.client.reply(operation, question, None, now);
        assert!(hand.drain().is_empty());
        assert_eq!(hand.ended.len(), 1);
    }
    let (mut hand, _) = older(true);
    let first = hand.submit(call(true)).remove(0);
    hand.written();
    hand.say(FORM);
    let (operation, question, now) = (OperationId::new(1), hand.question, hand.now);
    hand.client.reply(operation, question, None, now);
    assert_eq!(hand.drain()[0]["result"]["action"], "cancel");
    answer(&mut hand, &first["id"], r#""content":[]"#);
    assert!(matches!(hand.ended[0].outcome, Outcome::Complete(_)));
}

/// R30, R41: an older server that asks again with every answer, or takes each question back to ask another one,
/// keeps no call open for ever.
#[test]
fn an_older_server_asks_only_so_often() {
    for answers in [true, false] {
        let (mut hand, _) = older(true);
        hand.submit(call(true));
        hand.written();
        let operation = OperationId::new(1);
        for round in 1..=10 {
            assert!(
                hand.say(&FORM.replace("\"q\"", &round.to_string()))
                    .is_empty()
            );
            assert_eq!(hand.asked.len(), round);
            if answers {
                hand.reply(operation, &asked_ada()).unwrap();
                hand.drain();
                hand.written();
            } else {
                hand.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{round}}}}}"#));
            }
        }
        assert!(hand.ended.is_empty());
        let sent = hand.say(FORM);
        assert_eq!(hand.last_error(), Some((ErrorKind::Limit, Ran::Maybe)));
        assert_eq!(sent[0]["result"]["action"], "cancel");
    }
}
