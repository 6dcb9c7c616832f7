//! What a server was given in confidence is shown nowhere, whatever the server does with it (R3, R111).

mod world_support;

use conformance::world::World;
use mcp_proto::config::Transport;
use mcp_proto::error::Cause;
use mcp_proto::secret::Templated;
use mcp_proto::{Operation, Secret};
use world_support::*;

const TOKEN: &str = "s3cr3t-t0ken-of-ada";
const KEY: &str = "k3y-from-a-variable";

fn confiding(steps: &str) -> World {
    modern_with(
        |peer| {
            let Transport::Stdio(stdio) = &mut peer.transport else {
                unreachable!("the peers of these tests are processes");
            };
            let value = Secret::new(format!("Bearer {TOKEN}"));
            stdio.env.insert("AUTHORIZATION".into(), value);
            let arg = Templated::expanded(format!("--key={KEY};x"), "--key=${KEY};x");
            stdio.args.push(arg);
        },
        steps,
    )
}

/// Everything that is shown about a peer.
fn shown(world: &World) -> String {
    let report = world.client.report().to_json();
    format!("{} {:?}", report.as_str(), world.client.diagnoses())
}

fn assert_discreet(text: &str) {
    for secret in [TOKEN, KEY] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(text.contains("***"), "{text}");
}

/// An error answer, in its message and in its data; the rest of both stays.
#[test]
fn an_error_answer_is_quoted_without_secrets() {
    let steps = format!(
        r#"[{{"on":"tools/call"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{{\"code\":-32000,\"message\":\"bad token {TOKEN}\",\"data\":{{\"header\":\"Bearer {TOKEN}\",\"key\":\"{KEY}\",\"n\":1}}}}}}"]"#
    );
    let mut world = confiding(&steps);
    let error = fails(&mut world, echo());
    assert_eq!(
        error.to_string().matches("bad token ***").count(),
        1,
        "{error}"
    );
    let Cause::Rpc(rpc) = &error.cause else {
        panic!("{error:?}");
    };
    let data = rpc.data.as_ref().map(|data| data.as_str());
    assert_eq!(data, Some(r#"{"header":"***","key":"***","n":1}"#));
    assert_discreet(&format!("{error:?}"));
    close(world);
}

/// Noise, standard error, last words, and the report of a peer that fails with them.
#[test]
fn noise_and_last_words_are_quoted_without_secrets() {
    let long = "x".repeat(390);
    let steps = format!(
        r#"[{{"on":"tools/call"}},"using {TOKEN}\n","{long}{TOKEN}\n",{{"stderr":"Error: refused {KEY}\n  with {TOKEN}\n"}},{{"exit":1}}]"#
    );
    let mut world = confiding(&steps);
    let error = fails(&mut world, echo());
    assert_discreet(&format!("{error} {error:?}"));
    assert_eq!(error.stderr(), ["Error: refused ***", "  with ***"]);
    let text = shown(&world);
    assert_discreet(&text);
    // A secret that was cut short is none the less one.
    assert!(!text.contains(&TOKEN[..7]), "{text}");
    assert!(text.contains("using ***"), "{text}");
    close(world);
}

/// What was seen while the era was found out, and notes.
#[test]
fn evidence_is_quoted_without_secrets() {
    let steps = format!(
        r#"[{{"on":"server/discover"}},"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{{\"code\":-32603,\"message\":\"no {TOKEN} {KEY}\"}}}}"]"#
    );
    let mut config = peer("srv");
    if let Transport::Stdio(stdio) = &mut config.transport {
        stdio.env.insert("T".into(), Secret::new(TOKEN));
        stdio.env.insert("K".into(), Secret::new(KEY));
    }
    let mut world = probe(config, &steps);
    settle(&mut world);
    assert_discreet(&shown(&world));
    // Its own error, and the one about what may be there.
    for operation in [echo(), Operation::call("nowhere", None)] {
        let error = fails(&mut world, operation);
        assert_discreet(&format!("{error:?} {error} {}", error.remedy()));
    }
    close(world);
}
