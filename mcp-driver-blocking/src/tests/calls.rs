//! Leading, following, waiting, cancelling.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use mcp_proto::error::Cause;
use mcp_proto::{Config, ErrorKind, Options, Outcome, PeerConfig};

use super::{
    LONG, Server, alone, among_others, answered, client, client_of, descriptors, echo, eventually,
    hold, threads,
};
use crate::Client;
use crate::engine::State;

fn failed(outcome: &Outcome) -> Option<ErrorKind> {
    match outcome {
        Outcome::Failed(error) => Some(error.kind()),
        _ => None,
    }
}

/// Waits until one thread leads and so many follow.
fn all_wait(client: &Client, followers: usize) {
    let waiting = |state: &mut State| state.a_caller_sleeps() && state.followers() == followers;
    eventually("all threads wait", || client.owner.0.with(waiting));
}

/// Every thread leads, follows and is handed the lead many times; nobody hangs (R1), nobody gets
/// another's answer.
#[test]
fn sixty_four_threads_call_three_servers() {
    let _process = among_others();
    let (client, _servers) = client_of(3);
    let start = Barrier::new(64);
    thread::scope(|scope| {
        for number in 0..64_u32 {
            let (client, start) = (&client, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..50 {
                    let text = format!("{number}-{round}");
                    let operation = echo(&text).on((number % 3).to_string());
                    assert_eq!(answered(client.run(operation).unwrap()), text);
                }
            });
        }
    });
    client.close();
}

/// The pauses are around the keeper's patience, so that the lead goes to and fro.
#[test]
fn calls_at_all_paces_are_answered() {
    let _process = among_others();
    let (client, _server) = client();
    for pause in (0..120).map(|step| Duration::from_millis(step % 40)) {
        thread::sleep(pause);
        assert_eq!(answered(client.run(echo("hello")).unwrap()), "hello");
    }
}

/// The leader's answer comes first, and nobody else calls: the follower has to lead to get its own.
#[test]
fn the_lead_is_handed_to_a_waiting_follower() {
    let _process = among_others();
    let (client, server) = client();
    thread::scope(|scope| {
        let first = scope.spawn(|| client.run(hold("first")).unwrap());
        let first_call = server.called();
        all_wait(&client, 0);
        let second = scope.spawn(|| client.run(hold("second")).unwrap());
        let second_call = server.called();
        all_wait(&client, 1);

        server.answer(first_call);
        assert_eq!(answered(first.join().unwrap()), "first");
        all_wait(&client, 0);
        server.answer(second_call);
        assert_eq!(answered(second.join().unwrap()), "second");
    });
}

/// R40: it wakes whoever waits, on whatever thread.
#[test]
fn any_thread_can_cancel_what_leader_and_follower_wait_for() {
    let _process = among_others();
    let (client, _server) = client();
    let held: Vec<_> = (0..8).map(|_| client.submit(hold("?")).unwrap()).collect();
    let ids: Vec<_> = held.iter().map(crate::Pending::id).collect();
    thread::scope(|scope| {
        let waits: Vec<_> = held
            .into_iter()
            .map(|held| scope.spawn(|| held.wait()))
            .collect();
        all_wait(&client, 7);
        for id in ids {
            client.cancel(id);
            client.cancel(id);
        }
        for wait in waits {
            let ended = wait.join().unwrap();
            assert_eq!(failed(&ended.outcome), Some(ErrorKind::Cancelled));
        }
    });
    assert_eq!(answered(client.run(echo("alive")).unwrap()), "alive");
}

#[test]
fn a_dropped_operation_is_cancelled_and_its_answer_ignored() {
    let _process = among_others();
    let (client, server) = client();
    let dropped = client.submit(hold("first")).unwrap();
    let id = dropped.id();
    let call = server.called();
    drop(dropped);
    assert!(
        client
            .owner
            .0
            .with(|state| state.inbox.waiter(id).is_none())
    );
    server.answer(call);
    assert_eq!(answered(client.run(echo("second")).unwrap()), "second");
}

#[test]
fn a_wait_can_end_early_and_go_on() {
    let _process = among_others();
    let (client, server) = client();
    let pending = client.submit(hold("slow")).unwrap();
    let call = server.called();
    assert_eq!(pending.wait_timeout(Duration::ZERO), None);
    assert_eq!(pending.wait_timeout(Duration::from_millis(5)), None);
    server.answer(call);
    assert_eq!(answered(pending.wait_timeout(LONG).unwrap()), "slow");
    assert_eq!(pending.progress(), None);
    assert_eq!(pending.wait_timeout(LONG), None, "it is given out once");
    let Outcome::Failed(error) = pending.wait().outcome else {
        panic!("it is given out once");
    };
    assert!(matches!(error.cause, Cause::Usage(_)));
}

/// R41: a deadline passes whether its caller leads, follows or does not wait at all.
#[test]
fn deadlines_pass_for_leader_follower_and_idle() {
    let _process = among_others();
    let (client, _server) = client();
    let options = Options {
        absolute_timeout: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let late = || hold("late").with(options.clone());
    thread::scope(|scope| {
        let run = || client.run(late()).unwrap();
        let waits: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        for wait in waits {
            let ended = wait.join().unwrap();
            assert_eq!(failed(&ended.outcome), Some(ErrorKind::Timeout));
        }
    });
    let asleep = |state: &mut State| state.the_keeper_sleeps_for_ever();
    eventually("the keeper leads", || client.owner.0.with(asleep));
    let pending = client.submit(late()).unwrap();
    let over = |state: &mut State| state.inbox.is_over(pending.id());
    eventually("the deadline", || client.owner.0.with(over));
}

/// Closing ends every wait, on every thread, with exactly one outcome each.
#[test]
fn close_ends_the_waits_of_all_threads() {
    let _process = among_others();
    let (client, _servers) = client_of(2);
    thread::scope(|scope| {
        let wait = || client.run(hold("?")).unwrap();
        let waits: Vec<_> = (0..16).map(|_| scope.spawn(wait)).collect();
        all_wait(&client, 15);
        let closes: Vec<_> = (0..3).map(|_| scope.spawn(|| client.close())).collect();
        closes.into_iter().for_each(|close| close.join().unwrap());
        let ended: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        for ended in &ended {
            assert_eq!(failed(&ended.outcome), Some(ErrorKind::Closed));
        }
        let ids: BTreeSet<_> = ended.iter().map(|ended| ended.operation).collect();
        assert_eq!(ids.len(), 16);
    });
}

/// Nothing to do and no deadline: no thread of ours runs, not even now and then.
#[test]
fn an_idle_client_does_not_wake_up() {
    let _process = alone();
    let (client, _server) = client();
    let asleep = |state: &mut State| state.the_keeper_sleeps_for_ever();
    for _ in 0..3 {
        assert_eq!(answered(client.run(echo("hello")).unwrap()), "hello");
        eventually("the keeper leads", || client.owner.0.with(asleep));
    }
    let before = eventually_steady();
    assert_eq!(before.len(), 1, "the keeper: {before:?}");
    thread::sleep(Duration::from_millis(150));
    assert_eq!(time_on_processor(), before);
}

/// What the driver's threads have used once they are all asleep.
fn eventually_steady() -> Vec<String> {
    let mut last = Vec::new();
    eventually("all threads sleep", || {
        thread::sleep(Duration::from_millis(20));
        let now = time_on_processor();
        let steady = now == last;
        last = now;
        steady
    });
    last
}

/// How long each of the driver's threads has run, and how often.
fn time_on_processor() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let file = |path: &std::path::Path, name| std::fs::read_to_string(path.join(name)).ok();
    let ours = tasks
        .map(|task| task.path())
        .filter(|path| file(path, "comm").is_some_and(|name| name.starts_with("mcp-")));
    ours.filter_map(|path| file(&path, "schedstat")).collect()
}

/// A reader and a writer without a descriptor; the writer keeps what is not flushed.
#[test]
fn any_reader_and_writer_can_be_pumped() {
    let _process = alone();
    let before = descriptors();
    let (server, stream) = Server::start();
    let writer = std::io::BufWriter::new(stream.try_clone().unwrap());
    let builder = Client::builder(Config::new(vec![PeerConfig::stream("0")]));
    let client = builder.stream_any("0", stream, writer).start().unwrap();
    client.settled().unwrap();
    let text = "x".repeat(200_000);
    assert_eq!(answered(client.run(echo(&text)).unwrap()), text);
    client.close();
    drop(client);
    // Nothing else ends a `read` that blocks.
    server.writer.shutdown(std::net::Shutdown::Both).unwrap();
    drop(server);
    let gone = || threads().is_empty() && descriptors() == before;
    eventually("threads and descriptors are gone", gone);
}

#[test]
fn handles_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Client>();
    shared::<crate::Pending>();
    shared::<crate::Listener>();
}
