//! Each exit status, and what people read with it.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use cli_support::{DRIVERS, PROGRAM, Place, fake, scripted, stable};
use serde_json::json;

fn place(name: &str) -> Place {
    let tools = fake(&["--tools=add,ask,echo,fail,rpc_error,slow"]);
    Place::new(name, &[("git", tools)])
}

#[test]
fn the_call_failed() {
    let place = place("call_failed");
    for (name, args) in [
        ("is_error", &["call", "fail"][..]),
        ("rpc_error", &["call", "rpc_error"]),
        ("unknown_tool", &["call", "ecoh"]),
        (
            "timeout",
            &["call", "slow", r#"{"ms":60000}"#, "--timeout", "50"],
        ),
    ] {
        let done = place.run_both(args);
        assert_eq!(done.status, 1, "{done}");
        insta::assert_snapshot!(name, stable(&done.to_string()));
    }
    // However much the server says.
    let words = "x".repeat(5_000);
    let dies = scripted(&json!({"steps": [{"on": "tools/call"}, {"stderr": words}, {"exit": 3}]}));
    let dying = Place::new("may_have_executed", &[("s", dies)]);
    let done = dying.run_both(&["call", "echo"]);
    assert_eq!(done.status, 1, "{done}");
    let line = done.stderr.lines().next().unwrap();
    assert!(line.ends_with("; it may have been executed"), "{done}");
    let refused = dying.run_both(&["read", "s/"]);
    assert!(!refused.stderr.contains("executed"), "{refused}");
    let json = place.run_both(&["call", "fail", "--json"]);
    assert_eq!((json.status, &json.json()["isError"]), (1, &json!(true)));
    let json = place.run_both(&["call", "ecoh", "--json"]);
    assert_eq!(json.status, 1);
    assert_eq!(json.json()["outcome"], "error");
    assert_eq!(json.json()["error"]["kind"], "toolNotFound");
    assert_eq!(json.json()["error"]["mayHaveExecuted"], false);
    assert_eq!(json.stderr, "");
}

/// R110: file, line, path; nothing is started and nothing is printed on standard output.
#[test]
fn usage_and_configuration() {
    let place = place("usage");
    let wrong: [(&str, &[&str]); 7] = [
        ("no_json", &["call", "echo", "{"]),
        ("no_object", &["call", "echo", "[]"]),
        ("no_file", &["call", "echo", "@nowhere.json"]),
        ("no_such_peer", &["tools", "--peer", "gti"]),
        ("no_such_config", &["tools", "--config", "nowhere.json"]),
        ("bad_input", &["call", "ask", "--input", "name"]),
        ("no_such_command", &["tool"]),
    ];
    for (name, args) in wrong {
        let done = place.run_both(args);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done}");
        insta::assert_snapshot!(name, stable(&done.stderr));
    }
    place.write("{\"mcpServers\": {\n  \"git\": {\"command\": 1, \"args\": \"x\"}}}");
    for args in [&["report"][..], &["batch"]] {
        let done = place.run_both(args);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""));
        insta::assert_snapshot!("bad_config", done.stderr);
    }
    place.write("{\"mcpServers\": {\"git\": {\"command\": \"true\", \"comand\": 1}}}");
    let done = place.run_both(&["report"]);
    assert_eq!(done.status, 3);
    assert!(
        done.stderr
            .contains("warning: .mcp.json:1:44: mcpServers.git.comand"),
        "{done}"
    );
    assert_eq!(place.methods("git"), Vec::<String>::new());
}

#[test]
fn without_a_configuration_it_says_how_to_write_one() {
    let place = place("without");
    std::fs::remove_file(place.path().join(".mcp.json")).unwrap();
    let done = place.run_both(&["tools"]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""));
    assert_eq!(done.stderr.lines().count(), 1, "{done}");
    assert!(
        done.stderr.contains("; write .mcp.json: {\"mcpServers\""),
        "{done}"
    );
    // The user's own is read where the project has none.
    let user = place.path().join("config/mcp-harness");
    std::fs::create_dir_all(&user).unwrap();
    let own = json!({"mcpServers": {"own": fake(&["--tools=echo"])}});
    std::fs::write(user.join("mcp.json"), own.to_string()).unwrap();
    let done = place.run_both(&["report", "--json"]);
    assert_eq!(done.json()["peers"][0]["name"], "own");
}

/// R2: one that fails does not harm the others.
#[test]
fn some_peer_failed() {
    let dies = scripted(&json!({"steps": [{"exit": 3}, {"on": "server/discover"}]}));
    let servers = [
        ("dies", dies),
        ("good", fake(&["--tools=echo"])),
        ("missing", json!({"command": "no-such-program-anywhere"})),
    ];
    let place = Place::new("peer_failed", &servers);
    let done = place.run_both(&["report"]);
    assert_eq!(done.status, 3);
    insta::assert_snapshot!("some_failed", stable(&done.to_string()));
    assert_eq!(place.run_both(&["doctor"]).status, 3);
    let tools = place.run_both(&["tools"]);
    assert_eq!(tools.status, 0, "{tools}");
    assert!(
        tools.stderr.contains("warning: missing: cannot start"),
        "{tools}"
    );
    let call = place.run_both(&["call", "echo", r#"{"text":"on we go"}"#]);
    assert_eq!((call.status, call.stdout.as_str()), (0, "on we go\n"));
}

/// R30: exit 4 with the question and its key; with the answer the call goes on.
#[test]
fn input_is_required() {
    let place = place("input");
    let done = place.run_both(&["call", "ask"]);
    assert_eq!(done.status, 4);
    insta::assert_snapshot!("input_required", stable(&done.to_string()));
    let json = place.run_both(&["call", "ask", "--json"]);
    assert_eq!(json.status, 4);
    assert_eq!(json.json()["outcome"], "input_required");
    assert_eq!(
        json.json()["inputRequests"]["name"]["method"],
        "elicitation/create"
    );
    assert!(json.json()["requestState"].is_string());
    let answer = r#"name={"action":"accept","content":{"name":"Ada"}}"#;
    let done = place.run_both(&["call", "ask", "--input", answer]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "Hello, Ada\n"));
    let other = place.run_both(&["call", "ask", "--input", "nome={}"]);
    assert_eq!(other.status, 4);
}

/// The server is asked at most eleven times: the call, and ten rounds.
#[test]
fn rounds_are_bounded() {
    let again = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"roots/list"}}}}"#;
    let server = scripted(&json!({"steps": [{"on_each": "tools/call", "emit": again}]}));
    let place = Place::new("rounds", &[("s", server)]);
    for driver in DRIVERS {
        std::fs::remove_file(place.path().join("s.transcript")).ok();
        let done = place.run(&[
            "--driver",
            driver,
            "call",
            "echo",
            "--input",
            "k={\"roots\":[]}",
            "--json",
        ]);
        assert_eq!(done.status, 1, "{done}");
        assert_eq!(done.json()["error"]["kind"], "limit");
        let calls = place
            .methods("s")
            .iter()
            .filter(|method| *method == "tools/call")
            .count();
        assert_eq!(calls, 11);
    }
}

#[test]
fn a_signal_closes_everything() {
    for driver in DRIVERS {
        for signal in ["-INT", "-TERM"] {
            let place = place(&format!("signal{signal}-{driver}"));
            let args = ["--driver", driver, "call", "slow", r#"{"ms":60000}"#];
            let mut child = place.command(&args).spawn().unwrap();
            while !place
                .methods("git")
                .iter()
                .any(|method| method == "tools/call")
            {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let pid = child.id().to_string();
            assert!(
                std::process::Command::new("kill")
                    .args([signal, &pid])
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(child.wait().unwrap().code(), Some(130), "{signal} {driver}");
            place.assert_nothing_left();
        }
    }
}

/// Whenever the signal comes, also while the client is starting: the closing is waited for, however stubborn the
/// server is, and programs are told in one document.
#[test]
fn an_early_signal_leaves_nothing_behind() {
    let stubborn = scripted(&json!({"steps": [
        {"ignore_sigterm": true}, {"ignore_stdin_eof": true}, {"hang": true}]}));
    let run = &|driver: &str, millis: u64| {
        let place = Place::new(
            &format!("early-{millis}-{driver}"),
            &[("s", stubborn.clone())],
        );
        let args = ["--driver", driver, "call", "t", "--json"];
        let child = place.command(&args).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        let pid = child.id().to_string();
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-INT", &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        place.assert_nothing_left();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let Some(status) = output.status.code() else {
            // The system ended it before it could say a word.
            return assert_eq!(stdout, "", "{millis} {driver}");
        };
        assert_eq!(status, 130, "{millis} {driver}");
        let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(document["outcome"], "cancelled", "{millis} {driver}");
    };
    std::thread::scope(|scope| {
        for driver in DRIVERS {
            for millis in 0..12 {
                scope.spawn(move || run(driver, millis));
            }
        }
    });
}

/// A reader that goes away is no failure, and no reason for a message.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = place("pipe");
    let mut child = place.command(&["tools"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(cli_support::read_all(child.stderr.take().unwrap()), "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    place.assert_nothing_left();
}

/// R31: a call that waits for input is kept in a file by one process and taken up by another. A damaged file,
/// one without an answer and one for a server that is configured otherwise now are refused, with one line.
#[test]
fn a_call_goes_on_in_another_process() {
    let place = place("continued");
    let file = place.path().join("ask.json");
    let file = file.to_str().unwrap();
    let answer = r#"name={"action":"accept","content":{"name":"Ada"}}"#;
    let kept = place.run_both(&["call", "ask", "--save-continuation", file]);
    assert_eq!(kept.status, 4, "{kept}");
    let done = place.run_both(&["call", "--resume", file, "--input", answer]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, "Hello, Ada\n"),
        "{done}"
    );
    let json = place.run_both(&["call", "--resume", file, "--input", answer, "--json"]);
    assert_eq!(json.json()["tool"], "ask");

    let refused = |arguments: &[&str], words: &str| {
        let done = place.run_both(arguments);
        assert_eq!(done.status, 2, "{done}");
        assert_eq!(done.stderr.lines().count(), 1, "{done}");
        assert!(done.stderr.contains(words), "{done}");
    };
    refused(&["call"], "TOOL");
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replacen("ask", "asq", 1)).unwrap();
    refused(&["call", "--resume", file, "--input", answer], "damaged");
    refused(&["call", "--resume", "nowhere.json"], "nowhere.json");

    // Another process may know no such server: what was asked for is said all the same.
    std::fs::write(file, text).unwrap();
    std::fs::write(
        place.path().join("other.json"),
        json!({"mcpServers": {"other": fake(&["--tools=echo"])}}).to_string(),
    )
    .unwrap();
    let resume = ["call", "--resume", file, "--input", answer];
    let other = place.run_both(&[&resume[..], &["--config", "other.json", "--json"]].concat());
    assert_eq!(other.status, 2, "{other}");
    assert_eq!(other.json()["tool"], "ask", "{other}");
    let remedy = other.json()["error"]["remedy"].clone();
    assert!(
        remedy.as_str().unwrap().ends_with("or make it anew."),
        "{other}"
    );
}

/// A result that cannot be written is no success; a reader that has gone away is none of our business.
#[test]
#[cfg(target_os = "linux")]
fn a_lost_result_is_no_success() {
    let place = place("lost");
    let config = place.path().join(".mcp.json");
    for arguments in [
        &["report"][..],
        &["tools", "--json"],
        &["call", "echo", r#"{"text":"x"}"#],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let done = std::process::Command::new(PROGRAM)
            .arg("--config")
            .arg(&config)
            .args(arguments)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(1), "{arguments:?}");
        let words = String::from_utf8(done.stderr).unwrap();
        assert!(words.contains("cannot write to standard output"), "{words}");
    }
}
