//! Prices, budgets, the ledger and output schemas on the command line (R50, R51, R63).
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use cli_support::{Place, fake, scripted};
use serde_json::{Value, json};

/// A place with one server of a price, and these settings beside it.
fn priced(name: &str, harness: Value) -> Place {
    let place = Place::new(name, &[]);
    let mut server = fake(&["--tools=echo"]);
    server["costUsd"] = json!(0.25);
    let config = json!({"mcpServers": {"s": server}, "harness": harness});
    place.write(&config.to_string());
    place
}

/// R50: each call is a line of the ledger; once the budget is used up a call is refused before it is sent,
/// also by another process, and whoever comes near is told.
#[test]
fn r50_a_budget_holds_over_processes() {
    let harness = json!({"ledger": "spend.jsonl", "taskId": "t", "budgetUsd": 0.75});
    let place = priced("budget", harness);
    let call = &["call", "echo", r#"{"text":"hi"}"#][..];
    for driver in ["tokio", "blocking", "tokio"] {
        let done = place.run(&[call, &["--driver", driver]].concat());
        assert_eq!((done.status, done.stdout.as_str()), (0, "hi\n"), "{done}");
    }
    let ledger = std::fs::read_to_string(place.path().join("spend.jsonl")).unwrap();
    assert_eq!(ledger.lines().count(), 3);
    for line in ledger.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["server"], &line["tool"]),
            (&json!("s"), &json!("echo"))
        );
        assert_eq!((&line["task"], &line["usd"]), (&json!("t"), &json!(0.25)));
    }
    let done = place.run_both(call);
    assert_eq!((done.status, done.stdout.as_str()), (1, ""), "{done}");
    assert!(done.stderr.contains("0.75 of 0.75 USD"), "{done}");
    let done = place.run_both(&[call, &["--json"]].concat()).json();
    assert_eq!(done["error"]["kind"], "limit");
    assert_eq!(done["error"]["mayHaveExecuted"], false);
    assert!(
        done["error"]["remedy"]
            .as_str()
            .unwrap()
            .contains("budgetUsd")
    );
}

/// R50: a ledger that cannot be written is said, and fails nothing.
#[test]
fn r50_a_ledger_failure_is_said_and_swallowed() {
    let place = priced(
        "no_ledger",
        json!({"ledger": "no/such/directory/spend.jsonl"}),
    );
    let done = place.run_both(&["call", "echo", r#"{"text":"hi"}"#]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "hi\n"), "{done}");
    assert!(
        done.stderr
            .starts_with("costs: a call was not appended to the ledger: "),
        "{done}"
    );
}

/// R50: so does `batch`, on standard error; and of what stands in the ledger and does not count as well.
#[test]
fn r50_batch_says_what_is_wrong_with_the_ledger() {
    let place = priced("odd_ledger", json!({"ledger": "odd.jsonl"}));
    for driver in ["tokio", "blocking"] {
        std::fs::write(
            place.path().join("odd.jsonl"),
            "no record\n{\"usd\":1}\n{\"us",
        )
        .unwrap();
        let input = place.path().join("input.jsonl");
        std::fs::write(
            &input,
            r#"{"id":1,"op":"call","tool":"echo","arguments":{"text":"hi"}}"#,
        )
        .unwrap();
        let mut command = place.command(&["--driver", driver, "batch"]);
        let input = std::fs::File::open(input).unwrap();
        let output = command.stdin(input).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            stderr,
            "costs: lines of the ledger that are no records, and do not count: 1\n\
             costs: the ledger ends in the middle of a line, which does not count\n"
        );
    }
}

/// R63: with `--validate` a result that does not fit is shown, with what is wrong with it, and is no success.
#[test]
fn r63_call_validates_where_asked() {
    let tools = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{},"outputSchema":{"type":"object","required":["n"]}}]}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"ran"}],"structuredContent":{}}}"#;
    let server = scripted(&json!({"steps": [
        {"on_each": "tools/list", "emit": tools}, {"on_each": "tools/call", "emit": answer}]}));
    let place = Place::new("validate", &[("s", server)]);
    assert_eq!(place.run_both(&["call", "t"]).status, 0);
    let done = place.run_both(&["call", "t", "--validate"]);
    assert_eq!((done.status, done.stdout.as_str()), (1, "ran\n"), "{done}");
    let words = "error: the tool ran, but its structured result does not fit the output schema: ";
    assert!(done.stderr.starts_with(words), "{done}");
    let done = place.run_both(&["call", "t", "--validate", "--json"]);
    assert_eq!(done.status, 1, "{done}");
    let document = done.json();
    assert_eq!(document["outcome"], "complete");
    assert_eq!(document["structuredContent"], json!({}));
    let mismatch = document["schemaMismatch"].as_str().unwrap();
    assert!(
        mismatch.contains("\"n\" is a required property"),
        "{mismatch}"
    );
}

/// R63: with `--validate` it is said where nothing could be checked, by a call that goes on, too.
#[test]
fn r63_what_could_not_be_validated_is_said() {
    let tools = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{}},{"name":"odd","inputSchema":{},"outputSchema":{"$schema":"https://example.com/mine"}}]}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"ran"}],"structuredContent":{}}}"#;
    let server = scripted(&json!({"steps": [
        {"on_each": "tools/list", "emit": tools},
        {"on": "tools/call"}, asks, {"on_each": "tools/call", "emit": answer}]}));
    let place = Place::new("unvalidated", &[("s", server)]);
    for (tool, why) in [
        ("t", "the tool has no output schema"),
        ("odd", "its output schema is not used: the dialect"),
    ] {
        let input = r#"k={"action":"accept","content":{}}"#;
        let done = place.run_both(&["call", tool, "--validate", "--input", input]);
        assert_eq!((done.status, done.stdout.as_str()), (0, "ran\n"), "{done}");
        let words = format!("warning: the result was not validated: {why}");
        assert!(done.stderr.contains(&words), "{done}");
        let done = place.run_both(&["call", tool, "--validate", "--input", input, "--json"]);
        let reason = done.json()["notValidated"].to_string();
        assert!(done.status == 0 && reason.contains(why), "{done}");
    }
}

/// R51: `doctor` has the numbers.
#[test]
fn r51_doctor_has_the_numbers() {
    let place = Place::new("numbers", &[("s", fake(&["--tools=echo"]))]);
    let document = place.run(&["doctor", "--json"]).json();
    let metrics = &document["peers"][0]["metrics"];
    assert_eq!(
        (&metrics["server"], &metrics["available"]),
        (&json!("s"), &json!(true))
    );
    assert_eq!(
        (&metrics["calls"], &metrics["errors"]),
        (&json!(0), &json!(0))
    );
    assert!(metrics["bytesSent"].as_u64().unwrap() > 0);
}
