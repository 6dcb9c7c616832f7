//! A client driven by hand, fact by fact: what waits for write credit, and what waits to be taken (R1, R13, R15,
//! R40, R42, R81).

mod hand;

use hand::{Hand, LINK, methods};
use mcp_proto::{Duration, ErrorKind, Event, Exit, Operation, Outcome, Ran, Request, Version};

/// R13, R15: a handshake that was not written by the time the server proves modern never is.
#[test]
fn an_unwritten_handshake_is_taken_back() {
    let mut hand = Hand::new(true);
    // The probe is stuck in the pipe: the handshake has to wait.
    assert!(hand.wait(Duration::from_secs(10)).is_empty());
    hand.say(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    assert_eq!(methods(&hand.written()), ["tools/list"]);
}

/// R15, R60: an answer in the belief that the server speaks an older revision leaves no more than the handshake
/// does, once it has proved modern.
#[test]
fn unwritten_answers_are_taken_back_with_the_handshake() {
    let mut hand = Hand::new(true);
    assert!(hand.wait(Duration::from_secs(10)).is_empty());
    hand.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    let written = hand.written();
    assert_eq!(
        (methods(&written).len(), written.len()),
        (1, 1),
        "{written:?}"
    );
}

/// R81: what was not written cannot be answered, however well its id is guessed: it is written after
/// all, and its own answer counts.
#[test]
fn an_unwritten_request_cannot_be_answered() {
    for guess in [
        r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":4}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#,
    ] {
        let mut hand = Hand::modern();
        assert_eq!(methods(&hand.echo()), ["tools/call"]);
        assert!(hand.echo().is_empty());
        hand.say(guess);
        assert!(
            hand.ended.is_empty() && hand.progress == 0,
            "{guess}: {:?}",
            hand.ended
        );
        assert_eq!(methods(&hand.written()), ["tools/call"]);
        hand.say(r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[]}}"#);
        assert!(
            matches!(hand.ended[0].outcome, Outcome::Complete(_)),
            "{guess}"
        );
    }
}

/// R1: a line over the limit concerns no request that was not written.
#[test]
fn an_unwritten_request_is_not_hit_by_a_long_line() {
    let mut hand = Hand::modern();
    hand.echo();
    hand.echo();
    hand.say(&format!(
        r#"{{"jsonrpc":"2.0","id":4,"result":{{"x":"{}"}}}}"#,
        "x".repeat(70_000)
    ));
    assert!(hand.ended.is_empty());
}

/// R90, R34: when the link is lost, what was not written was not executed.
#[test]
fn the_loss_tells_written_from_unwritten() {
    let mut hand = Hand::modern();
    hand.echo();
    hand.echo();
    hand.tell(Event::LinkEnded { link: LINK });
    hand.tell(Event::LinkStderrEnded { link: LINK });
    hand.tell(Event::LinkExited {
        link: LINK,
        exit: Exit::Code(1),
    });
    let rans: Vec<Ran> = hand
        .ended
        .iter()
        .map(|ended| match &ended.outcome {
            Outcome::Failed(error) => error.ran,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rans, [Ran::Maybe, Ran::No]);
    assert_eq!(hand.last_error(), Some((ErrorKind::Closed, Ran::No)));
}

/// R100, R90: what a dead server said last is quoted, also when it comes after the exit; but a pipe that
/// somebody else holds open is not waited for longer than a moment.
#[test]
fn last_words_are_awaited_but_not_for_long() {
    for ends in [true, false] {
        let mut hand = Hand::modern();
        hand.echo();
        hand.tell(Event::LinkEnded { link: LINK });
        hand.tell(Event::LinkExited {
            link: LINK,
            exit: Exit::Code(1),
        });
        assert!(hand.ended.is_empty());
        hand.tell(Event::LinkStderr {
            link: LINK,
            bytes: b"out of cheese\n",
        });
        if ends {
            hand.tell(Event::LinkStderrEnded { link: LINK });
        } else {
            let due = hand.client.poll_timeout().unwrap().since(hand.now);
            assert!(due <= Duration::from_millis(100), "{due:?}");
            hand.wait(due);
        }
        let Outcome::Failed(error) = &hand.ended[0].outcome else {
            panic!("{:?}", hand.ended);
        };
        assert!(error.to_string().contains("out of cheese"), "{error}");
    }
}

/// R90: one sign of the end is acted upon in time, however many operations there are.
#[test]
fn the_wait_for_the_second_sign_is_short_with_many_operations() {
    for count in [1, 8, 9, 50] {
        let mut hand = Hand::modern();
        for _ in 0..count {
            hand.echo();
        }
        hand.tell(Event::LinkEnded { link: LINK });
        let due = hand.client.poll_timeout().unwrap();
        assert!(
            due.since(hand.now) <= Duration::from_secs(1),
            "{count}: {due}"
        );
        hand.wait(due.since(hand.now));
        assert_eq!(hand.ended.len(), count);
    }
}

/// R1: an older server that floods requests and does not read is answered within bounds.
#[test]
fn answers_that_nobody_reads_are_bounded() {
    let mut hand = Hand::new(true);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}"#);
    hand.written();
    hand.say(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#);
    for _ in 0..10_000 {
        hand.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    }
    let mut bytes = 0;
    loop {
        let messages = hand.written();
        if messages.is_empty() {
            break;
        }
        bytes += messages
            .iter()
            .map(|message| message.to_string().len())
            .sum::<usize>();
    }
    assert!(((1 << 15)..(1 << 17)).contains(&bytes), "{bytes}");
    let dropped = hand.client.diagnoses()[0].counters.dropped_requests;
    assert!(dropped > 5_000, "{dropped}");
}

/// R40: a subscription that was not written ends silently.
#[test]
fn an_unwritten_subscription_ends_silently() {
    let mut hand = Hand::modern();
    hand.echo();
    let listen = Operation::new(Request::Listen).on("srv");
    let listen = hand.client.submit(listen, hand.now).unwrap();
    hand.client.finish(listen, hand.now);
    assert!(hand.drain().is_empty());
    assert!(hand.written().is_empty());
    assert_eq!(hand.ended.len(), 1);
}

/// R1, R91: notifications that nobody takes are bounded by their size, long before their number is.
#[test]
fn large_notifications_that_nobody_takes_stop_the_reading() {
    let mut hand = Hand::modern();
    let listen = Operation::new(Request::Listen).on("srv");
    let listen = hand.client.submit(listen, hand.now).unwrap();
    hand.drain();
    hand.written();
    let notification = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":3}},"x":"{}"}}}}"#,
        "x".repeat(20_000)
    );
    let mut told = 0;
    while hand.client.wants_read(LINK) && told < 100 {
        hand.say(&notification);
        told += 1;
    }
    assert_eq!(told, 4, "of 20 kB each, with a limit of 64 KiB");
    assert_eq!(hand.client.take_notifications(listen).len(), 4);
    assert!(hand.client.wants_read(LINK));
}

/// R15, R17: an answer to the handshake that comes after the server has proved to be modern installs nothing
/// of an older session: the next call is a modern one.
#[test]
fn a_handshake_answered_after_modern_proof_changes_nothing() {
    let mut hand = Hand::new(true);
    hand.written();
    assert_eq!(methods(&hand.wait(Duration::from_secs(10))), ["initialize"]);
    hand.written();
    hand.say(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    hand.written();
    hand.say(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#);
    hand.say(r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{}}]}}"#);
    hand.written();
    let call = hand.echo();
    assert_eq!(methods(&call), ["tools/call"]);
    assert_eq!(
        call[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        hand.client.report().peers[0].version,
        Some(Version::V2026_07_28)
    );
}
