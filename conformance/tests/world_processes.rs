//! Processes that die, hang, hold on or write floods (R90, R100).

mod world_support;

use conformance::fake_server::Script;
use conformance::world::{Fault, World, millis};
use mcp_proto::{Config, Duration, ErrorKind, Identity, Operation, Outcome, Ran, Request};
use world_support::*;

/// R90: everything in flight fails at once, as possibly executed; what was not written was not.
#[test]
fn a_killed_server_fails_what_is_in_flight() {
    let mut world = modern_with(
        |peer| peer.restart.max_attempts = 0,
        r#"[{"on":"tools/call"},{"stderr":"Segmentation fault\n"}]"#,
    );
    settle(&mut world);
    let call = world.submit(echo()).unwrap();
    let listen = world
        .submit(Operation::new(Request::Listen).on("srv"))
        .unwrap();
    world.run_for(millis(10));
    world.inject("srv", Fault::Kill);
    for operation in [call, listen] {
        let Outcome::Failed(error) = world.run_until_ended(operation).unwrap().outcome else {
            panic!()
        };
        assert_eq!((error.kind(), error.ran), (ErrorKind::Closed, Ran::Maybe));
        assert!(error.to_string().contains("signal 9"), "{error}");
        assert!(error.to_string().contains("Segmentation fault"), "{error}");
    }
    assert!(world.now() <= mcp_proto::Instant::after_epoch(millis(320)));
    assert_fails(&mut world, echo(), ErrorKind::Closed, Ran::No);
    insta::assert_snapshot!(close(world).transcript());
}

/// R90: one sign of the end is enough, whichever it is, also with many calls under way.
#[test]
fn one_sign_of_the_end_is_enough() {
    for fault in [Fault::CloseOutput, Fault::ExitOnly, Fault::CloseInput] {
        let mut world = modern_with(
            |peer| peer.restart.max_attempts = 0,
            r#"[{"on":"server/never"}]"#,
        );
        settle(&mut world);
        let slow = Operation::new(Request::Listen).on("srv");
        let calls: Vec<_> = (0..20)
            .map(|_| world.submit(slow.clone()).unwrap())
            .collect();
        world.run_for(millis(10));
        world.inject("srv", fault);
        let late = world.submit(echo()).unwrap();
        for operation in calls.into_iter().chain([late]) {
            let ended = world.run_until_ended(operation).unwrap();
            let Outcome::Failed(error) = ended.outcome else {
                continue;
            };
            assert_eq!(error.kind(), ErrorKind::Closed, "{fault:?}");
        }
        assert!(
            world.now() <= mcp_proto::Instant::after_epoch(millis(400)),
            "{fault:?} at {}",
            world.now()
        );
        close(world);
    }
}

/// R2: the others go on.
#[test]
fn the_death_of_one_peer_is_its_own() {
    let scripts = vec![
        ("srv".into(), Script::modern()),
        ("dead".into(), script(r#"{"steps":[{"exit":3}]}"#)),
    ];
    let mut world = World::new(
        Config::new(vec![peer("dead"), peer("srv")]),
        Identity::default(),
        scripts,
    );
    world.connect();
    assert_eq!(call(&mut world).text(), "hi");
    assert_eq!(
        run(
            &mut world,
            Operation::call("echo", mcp_proto::wire::Json::parse(r#"{"text":"x"}"#).ok())
        )
        .peer
        .as_deref(),
        Some("srv")
    );
    assert!(world.client.report().has_failures());
    close(world);
}

/// R100: a flood on standard error blocks nothing, and its newest end is kept.
#[test]
fn standard_error_is_always_drained() {
    let mut world = modern(
        r#"[{"on":"tools/call"},{"stderr_bytes":300000},{"stderr":"the end\n"},"«OK_RESULT»"]"#,
    );
    assert_eq!(call(&mut world).text(), "ok");
    world.run_for(millis(1));
    let stderr = world.client.diagnoses()[0].stderr.clone();
    assert_eq!(stderr.last().unwrap(), "the end");
    assert!(stderr.concat().len() <= 8 << 10);
    close(world);
}

/// R100: close, wait, ask, kill: as many rungs as it takes, then everything is let go.
#[test]
fn the_shutdown_ladder_has_four_rungs() {
    for (steps, seconds) in [
        ("[]", 0),
        (r#"[{"ignore_stdin_eof":true}]"#, 2),
        (r#"[{"ignore_stdin_eof":true},{"ignore_sigterm":true}]"#, 4),
        (
            r#"[{"ignore_stdin_eof":true},{"ignore_sigterm":true},{"spawn_child":"own_session"}]"#,
            4,
        ),
        (r#"[{"hang":true}]"#, 2),
    ] {
        let steps = steps
            .replacen('[', r#"[{"optional_on":"server/never","within_ms":1},"#, 1)
            .replace(",]", "]");
        let mut world = modern(&steps);
        settle(&mut world);
        world.run_for(Duration::from_secs(1));
        let start = world.now();
        let world = close(world);
        assert_eq!(world.now().since(start).as_secs(), seconds, "{steps}");
        if seconds == 4 {
            insta::allow_duplicates! { insta::assert_snapshot!(tail(&world), @r"
            1.000 close
            1.000 srv.1 → close input
            3.000 time
            3.000 srv.1 → terminate
            5.000 time
            5.000 srv.1 → kill
            "); }
        }
    }
}

/// From the close to the kill.
fn tail(world: &World) -> String {
    let transcript = world.transcript();
    let lines = transcript
        .lines()
        .skip_while(|line| !line.ends_with(" close"));
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
        if line.ends_with("kill") {
            break;
        }
    }
    text
}

/// R100: closing in the midst of it all ends what is pending, and Closed is the last word.
#[test]
fn closing_ends_what_is_pending() {
    let mut world = modern(r#"[{"on":"tools/call"}]"#);
    settle(&mut world);
    let call = world.submit(echo()).unwrap();
    world.run_for(millis(10));
    let mut world = close(world);
    let Outcome::Failed(error) = world.run_until_ended(call).unwrap().outcome else {
        panic!()
    };
    assert_eq!((error.kind(), error.ran), (ErrorKind::Closed, Ran::Maybe));
    assert!(matches!(
        world.take_news().last(),
        Some(mcp_proto::News::Closed)
    ));
    assert_fails(&mut world, echo(), ErrorKind::Unavailable, Ran::No);
}

/// R100: a client that is closed while its server starts lets go of it at once.
#[test]
fn closing_during_the_start_lets_go() {
    let mut world = world(peer("srv"), Script::modern());
    world.close();
    assert!(close(world).sent_to("srv").is_empty());
}

/// R100: a process that is being started when the client is closed is awaited and shut down like any other:
/// it is not let go of before it is there.
#[test]
fn a_server_that_is_just_being_started_is_shut_down_too() {
    let mut world = world(peer("srv"), Script::modern());
    world.close();
    let transcript = close(world).transcript();
    let steps = [
        "srv.1 → open",
        "srv.1 opened",
        "srv.1 → close input",
        "srv.1 → release",
    ];
    let mut rest = transcript.as_str();
    for step in steps {
        let (_, after) = rest
            .split_once(step)
            .unwrap_or_else(|| panic!("{step}: {transcript}"));
        rest = after;
    }
}
