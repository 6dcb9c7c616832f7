//! A client driven by hand: operations that wait for a list, for a place in flight and for the server to come back
//! are each sent once (R20, R34, R90).

mod hand;

use hand::{Hand, methods};
use mcp_proto::{Event, Exit, Identity, Operation};
use serde_json::Value;

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// A modern peer with the tool `echo` and two places in flight.
fn hand() -> Hand {
    let mut hand = Hand::with(Identity::default(), |peer| peer.limits.in_flight = 2);
    hand.introduce(1);
    hand
}

fn call(hand: &mut Hand) -> Vec<Value> {
    hand.submit(Operation::call("echo", None).on("srv"))
}

/// Answers `tools/list`, and gives what is written in return, all of it.
fn list(hand: &mut Hand, id: &Value) -> Vec<Value> {
    let mut sent = hand.say(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"echo","inputSchema":{{}}}}]}}}}"#
    ));
    sent.extend(hand.written());
    sent
}

/// R20, R90: the third of three calls that waited for a list has no place; it is sent once when the server is back.
#[test]
fn what_waited_for_a_list_is_sent_once_in_the_next_life() {
    let mut hand = hand();
    hand.say(CHANGED);
    let listed = call(&mut hand);
    assert_eq!(methods(&listed), ["tools/list"]);
    hand.written();
    assert!(call(&mut hand).is_empty() && call(&mut hand).is_empty());
    let sent = list(&mut hand, &listed[0]["id"]);
    assert_eq!(methods(&sent), ["tools/call", "tools/call"]);
    hand.written();

    let link = hand.link;
    hand.tell(Event::LinkStderrEnded { link });
    hand.tell(Event::LinkEnded { link });
    hand.tell(Event::LinkExited {
        link,
        exit: Exit::Code(1),
    });
    // The two that were sent may have run.
    assert_eq!(hand.ended.len(), 2);
    let due = hand.client.poll_timeout().unwrap().since(hand.now);
    hand.wait(due);
    let link = hand.link;
    let probe = hand.tell(Event::LinkOpened { link }).remove(0);
    let id = probe["id"].as_u64().unwrap();
    hand.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}"#));
    let listed = hand.written().remove(0);
    let mut sent = list(&mut hand, &listed["id"]);
    sent.extend(hand.written());
    assert_eq!(methods(&sent), ["tools/call"]);
}

/// R20: a second change, announced while some of those that waited for the first list wait for a place, makes
/// nothing wait twice.
#[test]
fn what_waits_for_a_place_is_not_queued_again_by_another_list() {
    let mut hand = hand();
    hand.say(CHANGED);
    let listed = call(&mut hand);
    hand.written();
    for _ in 0..3 {
        assert!(call(&mut hand).is_empty());
    }
    let mut sent = list(&mut hand, &listed[0]["id"]);
    assert_eq!(methods(&sent), ["tools/call", "tools/call"]);
    hand.say(CHANGED);
    let mut calls = 2;
    while let Some(request) = sent.pop() {
        let more = if request["method"] == "tools/list" {
            list(&mut hand, &request["id"])
        } else {
            let mut more = hand.say(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","content":[]}}}}"#,
                request["id"]
            ));
            more.extend(hand.written());
            more
        };
        calls += methods(&more)
            .iter()
            .filter(|method| **method == "tools/call")
            .count();
        sent.extend(more);
    }
    assert_eq!((calls, hand.ended.len()), (4, 4));
}
