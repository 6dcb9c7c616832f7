//! The end of a client and of its servers (R100).

use std::fs;
use std::thread;

use mcp_proto::{ErrorKind, Operation, PeerConfig, Request};
use serde_json::{Value, json};

use super::process::{Process, until};
use super::stage::{PATIENCE, Stage, call, refused};
use super::{Setup, expect};

/// The whole ladder is not needed: the end of input is enough, and nothing is reported as broken.
pub(super) fn a_server_that_ends_by_itself_is_reaped(stage: &Stage<'_>) {
    let options = json!({"transcript": stage.file("transcript")});
    let client = stage.connect(vec![
        stage.peer("a", json!({"options": options})),
        stage.modern("b"),
    ]);
    assert_eq!(stage.processes().len(), 2);
    client.echo("a", "hello");
    client.end();
    let methods = stage.received_methods("transcript");
    assert_eq!(
        methods,
        ["server/discover", "tools/list", "tools/call"],
        "nothing else was said"
    );
}

pub(super) fn a_child_that_ignores_the_end_of_input_is_terminated(stage: &Stage<'_>) {
    stubborn(stage, json!([{"ignore_stdin_eof": true}]));
}

pub(super) fn a_child_that_ignores_sigterm_is_killed(stage: &Stage<'_>) {
    stubborn(
        stage,
        json!([{"ignore_stdin_eof": true}, {"ignore_sigterm": true}]),
    );
}

/// The server itself ends when it is told; its child would hold the pipes for a minute.
/// A launcher in between hears of the end as well: first of the end of input, and no signal comes.
pub(super) fn the_end_of_input_comes_before_any_signal(stage: &Stage<'_>) {
    let note = stage.file("note");
    let peer = launched(stage, json!({}), "\"$@\"; echo \"ended $?\" > \"$note\"");
    let client = stage.connect(vec![peer]);
    client.echo("launched", "hello");
    client.end();
    assert_eq!(fs::read_to_string(note).ok().as_deref(), Some("ended 0\n"));
}

/// Whoever does not end at the end of input is asked before it is killed, launchers too.
pub(super) fn sigterm_comes_before_sigkill(stage: &Stage<'_>) {
    let note = stage.file("note");
    let deaf = json!({"steps": [{"ignore_stdin_eof": true}]});
    let trap = "trap 'echo asked > \"$note\"; exit' TERM; \"$@\"";
    let client = stage.connect(vec![launched(stage, deaf, trap)]);
    client.echo("launched", "ok");
    assert_eq!(stage.processes().len(), 2);
    client.end();
    assert_eq!(fs::read_to_string(note).ok().as_deref(), Some("asked\n"));
}

pub(super) fn a_grandchild_that_holds_the_pipes_is_killed(stage: &Stage<'_>) {
    let client = stage.connect(vec![
        stage.steps("a", json!([{"spawn_child": "holds_pipes"}])),
    ]);
    client.echo("a", "ok");
    assert!(until(PATIENCE, || stage.processes().len() == 2));
    client.end();
}

/// Nobody can reach it with a signal to the group; it must not be waited for.
pub(super) fn a_grandchild_in_its_own_session_delays_nothing(stage: &Stage<'_>) {
    let client = stage.connect(vec![
        stage.steps("a", json!([{"spawn_child": "own_session"}])),
    ]);
    client.echo("a", "ok");
    assert!(until(PATIENCE, || stage
        .processes()
        .iter()
        .any(Process::leads_a_session)));
    let (fled, own): (Vec<_>, Vec<_>) = stage
        .processes()
        .into_iter()
        .partition(Process::leads_a_session);
    client.close();
    assert!(
        until(PATIENCE, || !own.iter().any(Process::is_left)),
        "{own:?}"
    );
    fled.iter().for_each(Process::kill);
    client.nothing_is_left(own);
}

/// R90: what is pending ends with `closed`, before anybody waits for a server to go.
pub(super) fn pending_calls_end_before_the_servers_do(stage: &Stage<'_>) {
    let slow = json!([{"ignore_stdin_eof": true}, {"on": "tools/call"}, {"hang": true}]);
    let client = stage.connect(vec![stage.steps("slow", slow), stage.modern("quick")]);
    let listening = client.submit(Operation::new(Request::Listen).on("quick"));
    let sent = client.submit(call("slow", "echo", json!({"text": "?"})));
    client.echo("quick", "meanwhile");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| (client.wait(sent), stage.processes().len()));
        client.close();
        let Ok((ended, processes)) = waiting.join() else {
            panic!("the wait did not end");
        };
        expect::failed_with(ended, ErrorKind::Closed, true);
        assert!(processes > 0, "the call ended before the server did");
    });
    expect::failed(client.wait(listening));
    let error = refused(&client, call("quick", "echo", json!({"text": "too late"})));
    assert_eq!(
        (error.kind(), error.may_have_executed()),
        (ErrorKind::Unavailable, false)
    );
    client.end();
}

pub(super) fn closing_twice_and_from_two_threads_is_closing_once(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.steps("a", json!([{"ignore_stdin_eof": true}]))]);
    thread::scope(|scope| {
        scope.spawn(|| client.close());
        scope.spawn(|| client.close());
    });
    assert_eq!(stage.processes(), []);
    client.close();
    client.end();
}

/// A server that never answers the first question is no reason to wait.
pub(super) fn closing_while_connecting_leaves_nothing(stage: &Stage<'_>) {
    let silent = json!({"era": "probe", "steps": [{"hang": true}]});
    let client = stage.start(Setup::of(vec![stage.peer("silent", silent)]));
    assert!(until(PATIENCE, || !stage.processes().is_empty()));
    let settled = client.submit(Operation::new(Request::Settle));
    let early = client.submit(call("silent", "echo", json!({"text": "?"})));
    client.close();
    for id in [settled, early] {
        expect::failed_with(client.wait(id), ErrorKind::Closed, false);
    }
    client.end();
}

/// Without any politeness: also those that ignore it, and their children.
pub(super) fn dropping_the_client_kills_everything(stage: &Stage<'_>) {
    let steps = json!([
        {"ignore_stdin_eof": true},
        {"ignore_sigterm": true},
        {"spawn_child": "holds_pipes"},
    ]);
    let client = stage.connect(vec![stage.steps("stubborn", steps), stage.modern("good")]);
    client.echo("stubborn", "ok");
    assert!(until(PATIENCE, || stage.processes().len() == 3));
    let _pending = client.submit(call("good", "slow", json!({"ms": 600_000})));
    client.abandon();
}

/// A server behind a shell, as many are; `note` is a file of that name.
fn launched(stage: &Stage<'_>, script: Value, commands: &str) -> PeerConfig {
    let note = stage.file("note").display().to_string();
    stage.stdio_peer("launched", script, |mut stdio| {
        let server = std::mem::replace(&mut stdio.command, "sh".into());
        let shell = ["-c", commands, "sh"].map(Into::into).into_iter();
        stdio.args = shell.chain([server]).chain(stdio.args).collect();
        stdio.env("note", note)
    })
}

/// A server that must be made to go.
fn stubborn(stage: &Stage<'_>, steps: Value) {
    let client = stage.connect(vec![stage.steps("a", steps)]);
    client.echo("a", "ok");
    client.end();
}
