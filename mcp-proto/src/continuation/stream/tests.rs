use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::continuation::Backoff;
use crate::time::Duration;

const KEY: &str = "key";

fn at(millis: u64) -> Instant {
    Instant::after_epoch(Duration::from_millis(millis))
}

fn piece(text: &str) -> StreamChunk {
    StreamChunk {
        text: text.into(),
        ..StreamChunk::default()
    }
}

fn checkpoint(text: &str, token: &str) -> StreamChunk {
    StreamChunk {
        checkpoint_token: Some(token.into()),
        ..piece(text)
    }
}

fn last(text: &str) -> StreamChunk {
    StreamChunk {
        is_final: true,
        ..piece(text)
    }
}

/// Two retries, 100 ms of silence, one second in all, waits of at most 10 and 20 ms.
fn policy() -> StreamPolicy {
    StreamPolicy {
        max_retries: 2,
        idle_timeout: Duration::from_millis(100),
        absolute_timeout: Duration::from_millis(1_000),
        backoff: Backoff {
            first: Duration::from_millis(10),
            max: Duration::from_millis(20),
            entropy: 1,
        },
        text_bytes: 32,
        token_bytes: 8,
        ..StreamPolicy::default()
    }
}

fn started(policy: StreamPolicy) -> StreamContinuation {
    let mut stream = StreamContinuation::new(policy, KEY);
    stream.start(at(0));
    assert_eq!(wishes(&mut stream), [open(1, None)]);
    stream
}

fn wishes(stream: &mut StreamContinuation) -> Vec<StreamWish> {
    core::iter::from_fn(|| stream.poll_wish()).collect()
}

fn open(source: Source, token: Option<&str>) -> StreamWish {
    StreamWish::Open {
        source,
        token: token.map(ToString::to_string),
        key: KEY.into(),
    }
}

fn close(source: Source) -> StreamWish {
    StreamWish::Close { source }
}

fn told(text: &str) -> StreamWish {
    StreamWish::Update(StreamUpdate::Text(text.into()))
}

fn rewind(length_bytes: usize) -> StreamWish {
    StreamWish::Update(StreamUpdate::Rewind { length_bytes })
}

fn end(text: &str, cancelled: bool, attempts: u32) -> StreamWish {
    StreamWish::End(Ok(StreamResult {
        text: text.into(),
        cancelled,
        attempts,
        answer: None,
    }))
}

/// Lets the wait pass.
fn wait(stream: &mut StreamContinuation) -> Vec<StreamWish> {
    let due = stream.poll_timeout().unwrap();
    stream.time_passed(due);
    wishes(stream)
}

/// R32: from the checkpoint if there is one, which covers its own piece; the rest of the text goes back.
#[test]
fn r32_resumes_from_the_checkpoint() {
    let mut stream = started(policy());
    stream.chunk(1, checkpoint("one ", "t1"), at(1));
    stream.chunk(1, piece("two "), at(2));
    assert_eq!(wishes(&mut stream), [told("one two ")]);
    stream.ended(1, at(3));
    assert_eq!(wishes(&mut stream), []);
    assert_eq!(stream.text(), "one two ");
    assert_eq!(wait(&mut stream), [rewind(4), open(2, Some("t1"))]);
    stream.chunk(2, last("zwei"), at(50));
    let expected = [close(2), told("zwei"), end("one zwei", false, 2)];
    assert_eq!(wishes(&mut stream), expected);
    assert_eq!((stream.poll_timeout(), stream.is_over()), (None, true));
}

/// R32: without a checkpoint the whole call runs again under the same key, and no text stays.
#[test]
fn r32_replays_without_a_checkpoint() {
    let mut stream = started(policy());
    stream.chunk(1, piece("one "), at(1));
    assert_eq!(wishes(&mut stream), [told("one ")]);
    stream.failed(1, true, at(2));
    assert_eq!(wait(&mut stream), [rewind(0), open(2, None)]);
    stream.chunk(2, last("eins"), at(50));
    assert_eq!(wishes(&mut stream).last(), Some(&end("eins", false, 2)));
}

/// R32: `Append` keeps what will come again, and takes nothing back.
#[test]
fn r32_append_keeps_everything() {
    let mut stream = started(StreamPolicy {
        text: StreamTextPolicy::Append,
        ..policy()
    });
    stream.chunk(1, checkpoint("one ", "t1"), at(1));
    stream.chunk(1, piece("two "), at(2));
    stream.ended(1, at(3));
    assert_eq!(wishes(&mut stream), [told("one two ")]);
    assert_eq!(wait(&mut stream), [open(2, Some("t1"))]);
    stream.chunk(2, last("two"), at(50));
    let whole = end("one two two", false, 2);
    assert_eq!(wishes(&mut stream).last(), Some(&whole));
}

/// R32: as many attempts as retries and one; then everything that a caller needs to go on by itself.
#[test]
fn r32_exhausted_degrades() {
    let mut stream = started(policy());
    stream.chunk(1, checkpoint("one ", "t1"), at(1));
    stream.ended(1, at(2));
    for source in 2..=3 {
        assert_eq!(wait(&mut stream).last(), Some(&open(source, Some("t1"))));
        stream.chunk(source, piece("two"), at(60));
        stream.ended(source, at(61));
    }
    let dropped = StreamDropped {
        reason: DropReason::Exhausted,
        token: Some("t1".into()),
        partial_text: "one two".into(),
        checkpoint_bytes: 4,
        key: KEY.into(),
        attempts: 3,
        degrades: true,
    };
    let ending = Some(StreamWish::End(Err(dropped)));
    assert_eq!(wishes(&mut stream).pop(), ending);
    // Without retries the first drop is the last.
    let mut stream = started(StreamPolicy {
        max_retries: 0,
        ..policy()
    });
    stream.ended(1, at(1));
    assert!(matches!(wishes(&mut stream).pop(), Some(StreamWish::End(Err(end))) if end.degrades));
}

/// R32: silence is a drop, and only silence: each piece begins it anew.
#[test]
fn r32_silence_is_a_drop() {
    let mut stream = started(policy());
    assert_eq!(stream.poll_timeout(), Some(at(100)));
    stream.chunk(1, piece("a"), at(99));
    stream.time_passed(at(198));
    assert_eq!(wishes(&mut stream), [told("a")]);
    assert_eq!(stream.poll_timeout(), Some(at(199)));
    stream.time_passed(at(199));
    assert_eq!(wishes(&mut stream), [close(1)]);
    let until = stream.poll_timeout().unwrap();
    assert!(at(204) <= until && until <= at(209), "{until}");
}

/// R32, R41: the overall deadline ends it, whatever still arrives; it degrades nobody.
#[test]
fn r32_overall_deadline() {
    let dropped = |wish: Option<StreamWish>| match wish {
        Some(StreamWish::End(Err(dropped))) => (dropped.reason, dropped.degrades),
        other => panic!("{other:?}"),
    };
    let mut stream = started(policy());
    for millis in (50..1_000).step_by(50) {
        stream.chunk(1, piece("a"), at(millis));
    }
    assert!(!stream.is_over());
    stream.chunk(1, piece("z"), at(1_000));
    let ending = wishes(&mut stream);
    assert_eq!(ending.first(), Some(&close(1)));
    assert_eq!(
        dropped(ending.last().cloned()),
        (DropReason::Deadline, false)
    );
    // What is complete in the same moment is complete.
    let mut stream = started(policy());
    stream.chunk(1, last("a"), at(1_000));
    assert_eq!(wishes(&mut stream).pop(), Some(end("a", false, 1)));
    // No wait that would end after it.
    let mut stream = started(policy());
    stream.ended(1, at(999));
    let reason = dropped(wishes(&mut stream).pop());
    assert_eq!(reason, (DropReason::Deadline, false));
}

/// R32, R34: a failure that the gate refuses to repeat is not repeated.
#[test]
fn r34_refused_failure_ends() {
    let mut stream = started(policy());
    stream.chunk(1, piece("a"), at(1));
    stream.failed(1, false, at(2));
    let ending = wishes(&mut stream);
    assert!(
        matches!(ending.last(), Some(StreamWish::End(Err(dropped)))
            if dropped.reason == DropReason::Refused && dropped.partial_text == "a" && !dropped.degrades),
        "{ending:?}"
    );
}

/// R33: in one piece cancel comes before checkpoint, drop, text and end. Each row: what the piece says
/// beside its text `x`, the text afterwards, and whether that ends, drops or goes on.
#[test]
fn r33_precedence() {
    let mut table = String::new();
    for bits in 0..16_u8 {
        let set = |bit: u8| bits & bit != 0;
        let (cancel, token, dropped, is_final) = (set(8), set(4), set(2), set(1));
        let mut stream = started(policy());
        if cancel {
            stream.cancel(at(1));
        }
        let chunk = StreamChunk {
            text: "x".into(),
            checkpoint_token: token.then(|| "t".into()),
            is_final,
            dropped,
        };
        stream.chunk(1, chunk, at(1));
        let outcome = match wishes(&mut stream).pop() {
            Some(StreamWish::End(Ok(result))) if result.cancelled => {
                format!("cancelled with {:?}", result.text)
            }
            Some(StreamWish::End(Ok(result))) => format!("complete with {:?}", result.text),
            Some(StreamWish::Close { .. } | StreamWish::Update(_)) | None
                if matches!(stream.state, State::Waiting { .. }) =>
            {
                let again = wait(&mut stream);
                match again.last() {
                    Some(StreamWish::Open { token: Some(_), .. }) => {
                        format!("resumes after {:?}", stream.text())
                    }
                    _ => format!("replays after {:?}", stream.text()),
                }
            }
            _ => format!("goes on after {:?}", stream.text()),
        };
        let word = |is_set, word| if is_set { word } else { "-" };
        table.push_str(&format!(
            "{:7}{:11}{:8}{:6}=> {outcome}\n",
            word(cancel, "cancel"),
            word(token, "checkpoint"),
            word(dropped, "dropped"),
            word(is_final, "final"),
        ));
    }
    insta::assert_snapshot!("precedence_of_what_a_piece_says", table);
}

/// R40: a cancelled stream keeps its text, opens nothing and is told from a complete one.
#[test]
fn r40_cancel_keeps_the_text() {
    let mut stream = started(policy());
    stream.chunk(1, piece("half"), at(1));
    stream.cancel(at(2));
    let expected = [close(1), told("half"), end("half", true, 1)];
    assert_eq!(wishes(&mut stream), expected);
    // Also between two attempts, where no source is open.
    let mut stream = started(policy());
    stream.chunk(1, piece("half"), at(1));
    stream.ended(1, at(2));
    stream.cancel(at(3));
    assert_eq!(wishes(&mut stream), [told("half"), end("half", true, 1)]);
    assert_eq!(stream.poll_timeout(), None);
    // Also before the beginning: nothing is opened then.
    let mut stream = StreamContinuation::new(policy(), KEY);
    stream.start(at(0));
    stream.cancel(at(0));
    assert_eq!(wishes(&mut stream), [end("", true, 1)]);
    // A complete one stays complete, be its end taken or not.
    let mut stream = started(policy());
    stream.chunk(1, last("all"), at(1));
    stream.cancel(at(2));
    assert_eq!(wishes(&mut stream).pop(), Some(end("all", false, 1)));
    stream.cancel(at(3));
    assert_eq!(wishes(&mut stream), []);
}

/// R32: what an earlier attempt says changes nothing.
#[test]
fn r32_superseded_source_is_not_heard() {
    let mut stream = started(policy());
    stream.chunk(1, piece("a"), at(1));
    stream.time_passed(at(101));
    wishes(&mut stream);
    assert_eq!(wait(&mut stream), [rewind(0), open(2, None)]);
    let timeout = stream.poll_timeout();
    stream.chunk(1, last("late"), at(120));
    stream.ended(1, at(120));
    stream.failed(1, false, at(120));
    assert_eq!(
        (wishes(&mut stream).len(), stream.poll_timeout()),
        (0, timeout)
    );
    assert_eq!((stream.text(), stream.dropped_late()), ("", 3));
}

/// R1: text and tokens are bounded.
#[test]
fn r1_text_and_tokens_are_bounded() {
    let reason = |chunk| {
        let mut stream = started(policy());
        stream.chunk(1, chunk, at(1));
        match wishes(&mut stream).pop() {
            Some(StreamWish::End(Err(dropped))) => {
                Some((dropped.reason, dropped.partial_text.len()))
            }
            _ => None,
        }
    };
    assert_eq!(reason(piece(&"x".repeat(32))), None);
    assert_eq!(
        reason(piece(&"x".repeat(33))),
        Some((DropReason::TextLimit, 0))
    );
    assert_eq!(reason(checkpoint("a", "12345678")), None);
    assert_eq!(
        reason(checkpoint("a", "123456789")),
        Some((DropReason::TokenLimit, 1))
    );
}

#[derive(Clone, Debug)]
enum Fact {
    Start,
    Chunk(i64, StreamChunk),
    Ended(i64),
    Failed(i64, bool),
    Cancel,
    Pass(u64),
    Due,
    Drain,
}

fn facts() -> impl Strategy<Value = Fact> {
    // Mostly the newest source, sometimes one before or one that never was.
    let source = prop_oneof![6 => Just(0_i64), 1 => Just(-1), 1 => Just(1)];
    let chunk = (
        "[aé]{0,6}",
        prop::option::weighted(0.3, "[t]{0,9}"),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(text, checkpoint_token, is_final, dropped)| StreamChunk {
            text,
            checkpoint_token,
            is_final,
            dropped,
        });
    prop_oneof![
        2 => Just(Fact::Start),
        8 => (source.clone(), chunk).prop_map(|(source, chunk)| Fact::Chunk(source, chunk)),
        2 => source.clone().prop_map(Fact::Ended),
        1 => (source, prop::bool::weighted(0.8)).prop_map(|(source, may)| Fact::Failed(source, may)),
        1 => prop::bool::weighted(0.1).prop_map(|cancel| if cancel { Fact::Cancel } else { Fact::Drain }),
        3 => (0..120_u64).prop_map(Fact::Pass),
        3 => Just(Fact::Due),
        4 => Just(Fact::Drain),
    ]
}

/// An application and a driver that know nothing of the machine's states.
#[derive(Default)]
struct Observer {
    text: String,
    opened: Source,
    closed: Source,
    ends: u32,
}

impl Observer {
    fn drain(
        &mut self,
        stream: &mut StreamContinuation,
        policy: &StreamPolicy,
    ) -> Result<(), TestCaseError> {
        let mut wishes = 0;
        while let Some(wish) = stream.poll_wish() {
            wishes += 1;
            prop_assert!(wishes <= 5, "few wishes at once");
            prop_assert_eq!(self.ends, 0, "nothing follows the end: {:?}", wish);
            match wish {
                StreamWish::Open { source, key, .. } => {
                    prop_assert!(source > self.opened && source <= policy.max_retries + 1);
                    prop_assert_eq!(key, KEY);
                    self.opened = source;
                }
                StreamWish::Close { source } => {
                    prop_assert!(source <= self.opened && source > self.closed, "closed once");
                    self.closed = source;
                }
                StreamWish::Update(StreamUpdate::Text(text)) => {
                    prop_assert!(!text.is_empty());
                    self.text.push_str(&text);
                }
                StreamWish::Update(StreamUpdate::Rewind { length_bytes }) => {
                    prop_assert_eq!(policy.text, StreamTextPolicy::Checkpointed);
                    prop_assert!(
                        length_bytes < self.text.len() && self.text.is_char_boundary(length_bytes)
                    );
                    self.text.truncate(length_bytes);
                }
                StreamWish::End(end) => {
                    self.ends += 1;
                    let text = match &end {
                        Ok(result) => &result.text,
                        Err(dropped) => {
                            prop_assert!(dropped.checkpoint_bytes <= dropped.partial_text.len());
                            &dropped.partial_text
                        }
                    };
                    prop_assert_eq!(&self.text, text, "the updates make up the text");
                }
            }
            prop_assert!(self.text.len() <= policy.text_bytes);
        }
        if self.ends == 0 {
            prop_assert_eq!(self.text.as_str(), stream.text(), "drained means told");
        }
        Ok(())
    }
}

proptest! {
    /// R1, R32, R33: whatever comes in whatever order, nothing panics, the application's copy is the
    /// text, sources are opened in order, and it ends exactly once, by its deadlines at the latest.
    #[test]
    fn r32_ends_once_whatever_happens(
        facts in prop::collection::vec(facts(), 0..60), append: bool, max_retries in 0..4_u32,
    ) {
        let text = if append { StreamTextPolicy::Append } else { StreamTextPolicy::Checkpointed };
        let policy = StreamPolicy { text, max_retries, ..policy() };
        let mut stream = StreamContinuation::new(policy, KEY);
        let mut observer = Observer::default();
        let mut now = at(0);
        for fact in facts {
            let newest = i64::from(observer.opened);
            let source = |offset: i64| Source::try_from(newest + offset).unwrap_or(0);
            match fact {
                Fact::Start => stream.start(now),
                Fact::Chunk(offset, chunk) => stream.chunk(source(offset), chunk, now),
                Fact::Ended(offset) => stream.ended(source(offset), now),
                Fact::Failed(offset, may_retry) => stream.failed(source(offset), may_retry, now),
                Fact::Cancel => stream.cancel(now),
                Fact::Pass(millis) => { now = now + Duration::from_millis(millis); stream.time_passed(now); }
                Fact::Due => {
                    if let Some(due) = stream.poll_timeout() { now = now.max(due); }
                    stream.time_passed(now);
                }
                Fact::Drain => observer.drain(&mut stream, &policy)?,
            }
        }
        stream.start(now);
        // A wait and an attempt for each, and the end.
        let mut steps = 2 * (max_retries + 2);
        while let Some(due) = stream.poll_timeout() {
            prop_assert!(steps > 0, "deadlines make progress");
            steps -= 1;
            stream.time_passed(due);
        }
        observer.drain(&mut stream, &policy)?;
        prop_assert_eq!(observer.ends, 1);
        prop_assert!(stream.is_over() && stream.poll_wish().is_none());
    }
}
