//! Every command in every kind of trouble: with `--json` one document on standard output, without it one line
//! on standard error.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use cli_support::{Done, Place, fake, scripted, stable};
use serde_json::{Value, json};

/// Every command that reads the configuration.
const COMMANDS: [&[&str]; 10] = [
    &["report"],
    &["tools"],
    &["resources"],
    &["resources", "--templates"],
    &["prompts"],
    &["call", "nowhere"],
    &["read", "no:where"],
    &["prompt", "nowhere"],
    &["doctor"],
    &["batch"],
];

/// A server that ends at once, with a stack trace.
fn dead() -> Value {
    let trace =
        "file.js:1\n  throw err;\n  ^\n\nError: no key\n    at a (file.js:1)\n\nNode.js v20\n";
    scripted(&json!({"steps": [{"stderr": trace}, {"exit": 3}, {"on": "server/discover"}]}))
}

/// Runs a command both ways: the exit status, the document, and the lines for people.
fn both_ways(place: &Place, command: &[&str]) -> (i32, Done, Done) {
    let people = place.run_both(command);
    let program = place.run_both(&[command, &["--json"]].concat());
    assert_eq!(people.status, program.status, "{people}{program}");
    (people.status, program, people)
}

/// The `error` of the one document. Nothing else is printed anywhere.
fn error(program: &Done) -> Value {
    failed(program, "error")
}

fn failed(program: &Done, outcome: &str) -> Value {
    assert_eq!(program.stdout.lines().count(), 1, "{program}");
    assert_eq!(program.stderr, "", "{program}");
    let document = program.json();
    assert_eq!(document["outcome"], outcome, "{program}");
    for member in ["kind", "message", "remedy"] {
        let text = document["error"][member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{member}: {program}");
    }
    document["error"].clone()
}

/// One line, whatever is quoted below it.
fn assert_one_line(people: &Done) {
    assert_eq!(people.stdout, "", "{people}");
    let mut lines = people.stderr.lines();
    assert!(lines.next().unwrap().starts_with("error: "), "{people}");
    assert!(lines.all(|line| line.starts_with("    ")), "{people}");
}

/// R110: a file that is wrong, empty or not there.
#[test]
fn the_configuration_is_wrong() {
    let place = Place::new("failures_config", &[("good", fake(&["--tools=echo"]))]);
    for text in [Some("{\"mcpServers\": 1}"), Some(""), Some(" \n"), None] {
        match text {
            Some(text) => place.write(text),
            None => std::fs::remove_file(place.path().join(".mcp.json")).unwrap(),
        }
        for command in COMMANDS {
            let (status, program, people) = both_ways(&place, command);
            assert_eq!(status, 2, "{people}");
            assert_one_line(&people);
            assert_eq!(error(&program)["kind"], "config", "{program}");
            let empty = text.is_some_and(|text| text.trim().is_empty());
            assert_eq!(
                people.stderr.contains("the file is empty"),
                empty,
                "{people}"
            );
        }
    }
    assert_eq!(place.methods("good"), Vec::<String>::new());
}

/// Nothing to show is no reason to show nothing.
#[test]
fn no_server_is_configured() {
    let place = Place::new("failures_empty", &[]);
    for (text, what, remedy) in [
        (
            "{\"mcpServers\": {}}",
            "no server is configured",
            "\"mcpServers\"",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}",
            "every server in .mcp.json is switched off",
            "remove the \"disabled\": true of a",
        ),
    ] {
        place.write(text);
        for command in COMMANDS {
            let (status, program, people) = both_ways(&place, command);
            let fails = matches!(command[0], "call" | "read" | "prompt");
            assert_eq!(status, i32::from(fails), "{people}");
            let first = people.stderr.lines().next().unwrap_or_default();
            assert!(first.contains(what) && first.contains(remedy), "{people}");
            match command[0] {
                "batch" => assert_eq!(program.stdout, ""),
                _ if fails => assert_eq!(program.json()["error"]["kind"], "unavailable"),
                "report" | "doctor" => assert_eq!(program.json()["peers"], json!([])),
                _ => assert_eq!(program.json(), json!([])),
            }
        }
    }
}

#[test]
fn the_command_line_is_wrong() {
    let place = Place::new("failures_usage", &[("good", fake(&["--tools=echo"]))]);
    let other: [&[&str]; 4] = [&["demo"], &["fake-server"], &["no-such-command"], &["call"]];
    for command in COMMANDS.iter().chain(&other) {
        let (status, program, people) = both_ways(&place, &[*command, &["--bogus"]].concat());
        assert_eq!(status, 2, "{people}");
        assert_one_line(&people);
        assert_eq!(error(&program)["kind"], "usage", "{program}");
    }
    for (command, words) in [
        (&["call", ""][..], "TOOL"),
        (&["read", ""], "URI"),
        (&["prompt", ""], "NAME"),
        (&["tools", "--peer", ""], "NAME"),
        (
            &["prompt", "x", r#"{"a":"1","b":2}"#],
            "\"b\" is not a string",
        ),
    ] {
        let (status, program, people) = both_ways(&place, command);
        assert_eq!(status, 2, "{people}");
        assert!(people.stderr.contains(words), "{people}");
        assert_eq!(error(&program)["kind"], "usage", "{program}");
    }
    // What would be ignored is refused, wherever it stands.
    for command in [
        &["fake-server", "--json"][..],
        &["--peer", "x", "fake-server"],
        &["fake-server", "--driver", "tokio"],
        &["demo", "--config", "x"],
        &["--peer", "x", "demo"],
    ] {
        let done = place.run(command);
        assert_eq!(done.status, 2, "{done}");
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains("means nothing to"), "{done}");
    }
    let help = place.run(&["batch", "--help"]).stdout;
    assert!(help.contains("--json"), "{help}");
    let nothing = place.run(&["--json"]);
    assert_eq!(
        (nothing.status, &error(&nothing)["kind"]),
        (2, &json!("usage"))
    );
    assert_eq!(place.methods("good"), Vec::<String>::new());
}

/// The cause stands in the error itself: nobody is sent to look for it elsewhere.
#[test]
fn no_server_is_up() {
    let place = Place::new("failures_none", &[("dead", dead())]);
    let mut shown = String::new();
    for command in COMMANDS {
        let (status, program, people) = both_ways(&place, command);
        match command[0] {
            "report" | "doctor" => {
                assert_eq!(status, 3, "{people}");
                let failure = &program.json()["peers"][0]["failure"];
                assert_eq!(failure["kind"], "closed", "{program}");
                assert_eq!(failure["stderr"][0], "file.js:1", "{program}");
                assert!(!people.stdout.contains("doctor`"), "{people}");
            }
            "batch" => assert_eq!((status, program.stdout.as_str()), (0, "")),
            _ => {
                assert_eq!(status, 1, "{people}");
                assert_one_line(&people);
                let error = error(&program);
                assert_eq!(error["kind"], "unavailable", "{program}");
                assert_eq!(error["failedPeersTotal"], 1);
                assert_eq!(error["failedPeers"][0]["name"], "dead");
                assert_eq!(error["failedPeers"][0]["kind"], "closed");
                assert_eq!(error["stderr"].as_array().unwrap().len(), 6, "{error}");
                shown = stable(&people.stderr);
            }
        }
    }
    insta::assert_snapshot!("no_server_is_up", shown);
}

/// R2: the one that is up serves; what it does not have may be on the other one.
#[test]
fn one_of_two_servers_is_down() {
    let servers = [("dead", dead()), ("good", fake(&["--tools=echo"]))];
    let place = Place::new("failures_one", &servers);
    for command in COMMANDS {
        let (status, program, people) = both_ways(&place, command);
        match command[0] {
            "report" | "doctor" => assert_eq!(status, 3, "{people}"),
            "batch" => assert_eq!(status, 0, "{people}"),
            "call" => {
                assert_eq!(status, 1, "{people}");
                assert_one_line(&people);
                let error = error(&program);
                assert_eq!(error["kind"], "toolNotFound");
                assert_eq!(error["failedPeers"][0]["name"], "dead");
                assert_eq!(error["mayHaveExecuted"], false);
                insta::assert_snapshot!("one_of_two_is_down", stable(&people.stderr));
            }
            "read" | "prompt" => {
                assert_eq!(status, 1, "{people}");
                assert_one_line(&people);
                let error = error(&program);
                assert_eq!(error["peer"], "good");
                assert_eq!(error["mayHaveExecuted"], true, "{program}");
                let asked = if command[0] == "read" { "uri" } else { "name" };
                assert_eq!(program.json()[asked], command[1], "{program}");
            }
            _ => {
                assert_eq!(status, 0, "{people}");
                assert!(!program.json().as_array().unwrap().is_empty(), "{program}");
                assert!(people.stderr.starts_with("warning: dead: "), "{people}");
                assert_eq!(people.stderr.lines().count(), 1, "{people}");
            }
        }
    }
}

/// What is asked for is called what it is, and nobody is mentioned whom it does not concern.
#[test]
fn errors_about_names_keep_to_the_name() {
    let servers = [
        ("dead", dead()),
        ("ok", fake(&["--tools=echo"])),
        ("two", fake(&["--tools=echo"])),
    ];
    let place = Place::new("failures_named", &servers);
    let mut shown = String::new();
    for command in [
        ["call", "echo"],
        ["call", "nosuch/foo"],
        ["call", "okk/foo"],
        ["call", "ok/nope"],
        ["read", "fake://text/readme"],
        ["read", "nosuch/x:y"],
        ["read", "ok/x:y"],
        ["prompt", "greeting"],
        ["prompt", "greting"],
        ["prompt", "nosuch/x"],
        ["prompt", "ok/nope"],
    ] {
        let done = place.run_both(&command);
        assert_eq!(done.status, 1, "{done}");
        // A bare name may be one of those that the dead one has.
        let may_have = !command[1].contains('/') && done.stderr.contains("did you mean");
        assert_eq!(done.stderr.contains("dead: "), may_have, "{done}");
        shown.push_str(&format!(
            "{}\n    {}",
            command.join(" "),
            stable(&done.stderr)
        ));
    }
    insta::assert_snapshot!("names", shown);
}

/// What cannot help is not advised: HTTP is not there yet.
#[test]
fn a_server_over_http_is_told_to_be_unsupported() {
    let place = Place::new(
        "failures_http",
        &[("api", json!({"url": "https://example.com/mcp"}))],
    );
    for command in [&["doctor"][..], &["report"], &["call", "x"]] {
        let done = place.run_both(command);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(
            all.contains("HTTP is not supported yet in this version"),
            "{done}"
        );
        assert!(!all.contains("doctor`"), "{done}");
    }
}

/// What is advised can be typed as it stands.
#[test]
fn advice_names_the_program_as_it_was_called() {
    let place = Place::new("failures_names", &[("good", fake(&["--tools=echo"]))]);
    let args = ["--config", ".mcp.json", "call", "nowhere"];
    let called = place.run(&args);
    let expected = format!("`{} --config .mcp.json tools`", cli_support::PROGRAM);
    assert!(called.stderr.contains(&expected), "{called}");
    let remedy = error(&place.run(&[&args[..], &["--json"]].concat()))["remedy"].clone();
    assert!(remedy.as_str().unwrap().contains(&expected), "{remedy}");
    let output = place
        .command(&args)
        .env("CARGO", "cargo")
        .env("CARGO_PKG_NAME", "mcp-driver-tokio")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("`cargo harness --config .mcp.json tools`"),
        "{said}"
    );
}

/// Sends a signal when the server was sent this method.
fn interrupted(place: &Place, server: &str, method: &str, args: &[&str]) -> Done {
    std::fs::remove_file(place.path().join(format!("{server}.transcript"))).ok();
    let child = place.command(args).spawn().unwrap();
    while !place.methods(server).iter().any(|sent| sent == method) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    place.assert_nothing_left();
    Done {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A signal is no reason to print nothing, or two documents; and it is why the command failed, whatever that
/// looked like.
#[test]
fn an_interrupted_command_prints_its_document() {
    let hangs = json!({"steps": [{"on_each": "server/discover", "emit": []}]});
    let place = Place::new("failures_signal", &[("hangs", scripted(&hangs))]);
    for command in COMMANDS.iter().filter(|command| **command != ["batch"]) {
        for driver in cli_support::DRIVERS {
            let args = [&["--driver", driver, "--json"], *command].concat();
            let done = interrupted(&place, "hangs", "server/discover", &args);
            assert_eq!(done.status, 130, "{done}");
            let error = failed(&done, "cancelled");
            assert_eq!(error["kind"], "cancelled", "{done}");
            assert_eq!(error["message"], "interrupted by a signal", "{done}");
            let operates = matches!(command[0], "call" | "read" | "prompt");
            let remedy = match operates {
                true => "Run it again: it was not carried out.",
                false => "Run it again.",
            };
            assert_eq!(error["remedy"], remedy, "{done}");
            assert_eq!(error["mayHaveExecuted"].is_boolean(), operates, "{done}");
        }
    }
}

/// What a call left behind is not known to whoever interrupted it.
#[test]
fn an_interrupted_call_says_that_it_may_have_run() {
    let place = Place::new("failures_signal_call", &[("s", fake(&["--tools=slow"]))]);
    let call = ["call", "slow", r#"{"ms":60000}"#];
    for driver in cli_support::DRIVERS {
        let args = [&["--driver", driver], &call[..]].concat();
        let people = interrupted(&place, "s", "tools/call", &args);
        assert_eq!(people.status, 130, "{people}");
        assert_eq!(
            people.stderr,
            "error: interrupted by a signal; find out whether it was carried out before you repeat it\n"
        );
        let program = interrupted(
            &place,
            "s",
            "tools/call",
            &[&args[..], &["--json"]].concat(),
        );
        assert_eq!(
            failed(&program, "cancelled")["mayHaveExecuted"],
            true,
            "{program}"
        );
        assert_eq!(program.json()["tool"], "slow", "{program}");
    }
}
