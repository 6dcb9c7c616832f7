//! Ready byte streams instead of processes (R100).

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_fake_server::{FakeServer, Input, Output, Script};
use mcp_proto::report::PeerState;
use mcp_proto::{ErrorKind, PeerConfig};
use serde_json::json;

use super::stage::{Client, Stage, call};
use super::{Setup, expect};

/// The same calls over a socket: small, large, many.
pub(super) fn a_ready_stream_is_a_peer_like_any_other(stage: &Stage<'_>) {
    let (client, server) = over_a_stream(stage, Script::modern());
    assert_eq!(client.report_of("inside").state, PeerState::Ready);
    client.echo("inside", "hello");
    client.echo("inside", &"large ".repeat(200_000));
    let calls: Vec<_> = (0..16)
        .map(|number| client.submit(call("inside", "slow", json!({"ms": 16 - number}))))
        .collect();
    for (id, wait) in calls.into_iter().zip((1..=16).rev()) {
        assert_eq!(
            expect::called(client.wait(id)).text(),
            format!("done after {wait} ms")
        );
    }
    client.end();
    assert_eq!(joined(server), Ending::InputEnded);
}

/// R90: as when a process dies.
pub(super) fn a_stream_that_ends_ends_its_calls(stage: &Stage<'_>) {
    let script = Script::modern().with_steps_json(r#"[{"on": "tools/call"}, {"exit": 0}]"#);
    let script = script.unwrap_or_else(|error| panic!("{error}"));
    let (client, server) = over_a_stream(stage, script);
    let ended = client.run(call("inside", "echo", json!({"text": "?"})));
    expect::failed_with(ended, ErrorKind::Closed, true);
    assert_eq!(joined(server), Ending::Exited);
    client.end();
}

/// The server sees the end of its input while its own direction is open.
pub(super) fn a_stream_is_shut_down_when_the_client_closes(stage: &Stage<'_>) {
    let (client, server) = over_a_stream(stage, Script::modern());
    client.echo("inside", "hello");
    client.close();
    client.close();
    assert_eq!(joined(server), Ending::InputEnded);
    client.end();
}

/// A client of one server that runs on a thread.
fn over_a_stream<'a>(stage: &'a Stage<'_>, script: Script) -> (Client<'a>, JoinHandle<Ending>) {
    let (ours, theirs) =
        UnixStream::pair().unwrap_or_else(|error| panic!("a socket pair: {error}"));
    let server = thread::spawn(move || serve(theirs, FakeServer::new(script)));
    let mut setup = Setup::of(vec![PeerConfig::stream("inside")]);
    setup.streams.push(("inside".to_owned(), ours));
    let client = stage.start(setup);
    client.settle();
    (client, server)
}

/// Why a server on a thread ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    InputEnded,
    Exited,
    Broken,
}

fn joined(server: JoinHandle<Ending>) -> Ending {
    server.join().unwrap_or(Ending::Broken)
}

/// Runs a fake server over a socket.
fn serve(mut stream: UnixStream, mut server: FakeServer) -> Ending {
    let start = Instant::now();
    let mut chunk = vec![0; 64 * 1024];
    let mut input_ended = false;
    loop {
        while let Some(output) = server.poll_output() {
            let written = match output {
                Output::Stdout(bytes) => stream.write_all(&bytes),
                Output::Exit(_) => {
                    let _ = stream.shutdown(Shutdown::Both);
                    return if input_ended {
                        Ending::InputEnded
                    } else {
                        Ending::Exited
                    };
                }
                _ => Ok(()),
            };
            if written.is_err() {
                return Ending::Broken;
            }
        }
        let due = server.poll_timeout().map(|due| {
            // A timeout of zero would mean none.
            due.saturating_sub(start.elapsed())
                .max(Duration::from_millis(1))
        });
        let _ = stream.set_read_timeout(due);
        let input = match stream.read(&mut chunk) {
            Ok(0) => {
                input_ended = true;
                // Only the client's writing half is closed: the other one still takes something.
                if stream.write_all(b"\n").is_err() {
                    return Ending::Broken;
                }
                Input::Eof
            }
            Ok(count) => Input::Bytes(chunk.get(..count).unwrap_or_default()),
            Err(error)
                if matches!(
                    error.kind(),
                    IoErrorKind::WouldBlock | IoErrorKind::TimedOut
                ) =>
            {
                Input::Tick
            }
            Err(error) if error.kind() == IoErrorKind::Interrupted => Input::Tick,
            Err(_) => return Ending::Broken,
        };
        server.handle(input, start.elapsed());
    }
}
