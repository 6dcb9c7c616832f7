//! What becomes of processes when a client ends.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use mcp_proto::{LinkTarget, Operation, Request};

use super::{
    LONG, alone, among_others, answered, call, cat, children, client, descriptors, eventually,
    facts, plan, processes_with, shell, threads,
};
use crate::Client;
use crate::toy::Toy;

#[test]
fn close_leaves_no_process_descriptor_or_thread() {
    let _process = alone();
    let before = descriptors();
    let client = client([
        cat(),
        shell("exec sleep 63.5"),
        shell("trap '' TERM; read x; sleep 64.5"),
    ]);
    assert_eq!(
        answered(&client.run(call("hello").on("0")).unwrap()),
        "hello"
    );
    client.close();
    client.close();
    let told = facts(&client);
    assert!(
        told.contains(&"p0.1 exited with status 0".to_owned()),
        "{told:?}"
    );
    assert!(
        told.contains(&"p1.1 had to be killed".to_owned()),
        "{told:?}"
    );
    assert_eq!(children(), Vec::<String>::new());
    let refused = client.run(call("again").on("0"));
    assert!(refused.is_err(), "{refused:?}");
    drop(client);
    assert_eq!(descriptors(), before);
    eventually("the threads are gone", || threads().is_empty());
}

/// Without `close`: the last handle is a [`crate::Pending`], on which nobody waits.
#[test]
fn dropping_the_last_handle_leaves_nothing_running() {
    let _process = alone();
    let before = descriptors();
    let client = client([shell("sleep 65.5 & sleep 65.5"), cat()]);
    let pending = client.submit(call("never answered").on("0")).unwrap();
    drop(client);
    eventually("they run", || processes_with("65.5").len() >= 2);
    drop(pending);
    eventually("they are gone", || processes_with("65.5").is_empty());
    assert_eq!(children(), Vec::<String>::new());
    assert_eq!(descriptors(), before);
    eventually("the threads are gone", || threads().is_empty());
}

#[test]
fn a_missing_program_is_reported_and_the_others_go_on() {
    let _process = among_others();
    let missing = LinkTarget::Process(plan("/no/such/program", &[]));
    let client = client([missing, cat()]);
    client.settled().unwrap();
    assert_eq!(facts(&client), ["p0.1 failed: NotFound"]);
    assert_eq!(
        answered(&client.run(call("hello").on("1")).unwrap()),
        "hello"
    );
}

/// Nobody waits for anything: the keeper notices the exit, after all that was said before it.
#[test]
fn an_idle_client_notices_output_and_exit_in_their_order() {
    let _process = among_others();
    let client = client([shell(
        "head -c 300000 /dev/zero >&2; echo note last words; exit 3",
    )]);
    let expected = ["note last words", "p0.1 exited with status 3"];
    eventually("the exit", || {
        facts(&client)
            .last()
            .is_some_and(|fact| fact == expected[1])
    });
    let told: Vec<_> = facts(&client)
        .into_iter()
        .filter(|fact| fact != "p0.1 ended")
        .collect();
    assert_eq!(told, expected);
    assert_eq!(
        client.shared().with(|state| state.core.stderr_bytes),
        300_000
    );
}

#[test]
fn a_host_stream_carries_calls_and_serves_once() {
    let _process = among_others();
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut writer = theirs.try_clone().unwrap();
        std::io::copy(&mut &theirs, &mut writer)
    });
    let stream = |name: &str| LinkTarget::Stream {
        name: name.to_owned(),
    };
    let toy = Toy::of([stream("socket"), stream("absent")]);
    let pair = (ours.try_clone().unwrap().into(), ours.into());
    let client = Client::over(|_| toy, BTreeMap::from([("socket".to_owned(), pair)])).unwrap();
    client.settled().unwrap();
    assert_eq!(facts(&client), ["p1.1 failed: NotFound"]);
    assert_eq!(answered(&client.run(call("hello")).unwrap()), "hello");
    client.close();
}

/// A reader and a writer without a descriptor: pipes on threads stand in.
#[test]
fn any_reader_and_writer_can_be_pumped() {
    let _process = among_others();
    let (theirs, writer) = std::io::pipe().unwrap();
    let (reader, mut back) = std::io::pipe().unwrap();
    std::thread::spawn(move || std::io::copy(&mut &theirs, &mut back));
    let reader = Box::new(reader) as Box<dyn std::io::Read + Send>;
    let writer = Box::new(std::io::BufWriter::new(writer)) as Box<dyn std::io::Write + Send>;
    let pair = crate::sys::pump(reader, writer).unwrap();
    let toy = Toy::of([LinkTarget::Stream {
        name: "any".to_owned(),
    }]);
    let client = Client::over(|_| toy, BTreeMap::from([("any".to_owned(), pair)])).unwrap();
    let text = "x".repeat(200_000);
    assert!(answered(&client.run(call(&text)).unwrap()) == text);
    let settle = client.submit(Operation::new(Request::Settle)).unwrap();
    assert!(settle.wait_timeout(LONG).is_some());
    client.close();
}
