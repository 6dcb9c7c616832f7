//! `batch`: operations and their lines, the same through both drivers.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use cli_support::{DRIVERS, Place, fake, legacy, scripted, stable, without_ms};
use serde_json::{Value, json};

fn place(name: &str) -> Place {
    let new = fake(&["--tools=add,ask,echo,fail,progress,rpc_error,slow,touch_list"]);
    let old = legacy(&["--tools=echo,env"]);
    let dies = scripted(&json!({"steps": [{"exit": 3}, {"on": "server/discover"}]}));
    Place::new(name, &[("dies", dies), ("new", new), ("old", old)])
}

fn input(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n").into_bytes()
}

fn show(lines: &[Value]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| without_ms(line).to_string())
        .collect();
    lines.join("\n")
}

/// The outcome line of an operation.
fn outcome<'a>(lines: &'a [Value], id: &Value) -> &'a Value {
    let mut outcomes = lines
        .iter()
        .filter(|line| line["id"] == *id && line.get("outcome").is_some());
    let first = outcomes.next().unwrap_or_else(|| panic!("{id}: {lines:?}"));
    assert!(outcomes.next().is_none(), "{id} has two outcomes");
    first
}

/// Every row of the table, in the foreground: one outcome per line and in the order of the lines.
#[test]
fn operations() {
    let lines = [
        json!({"id": 1, "op": "report"}),
        json!({"id": "tools of one", "op": "list_tools", "peer": "old"}),
        json!({"id": 3, "op": "list_resources", "peer": "new"}),
        json!({"id": 4, "op": "list_resource_templates"}),
        json!({"id": 5, "op": "list_prompts"}),
        json!({"id": 6, "op": "call", "tool": "add", "arguments": {"a": 1, "b": 2}}),
        json!({"id": 7, "op": "call", "tool": "new/echo", "arguments": {"text": "x"}}),
        json!({"id": 8, "op": "call", "tool": "echo", "peer": "old", "arguments": {"text": "y"}}),
        json!({"id": 9, "op": "read", "uri": "fake://text/readme", "peer": "new"}),
        json!({"id": 10, "op": "read", "uri": "old/fake://text/readme"}),
        json!({"id": 11, "op": "prompt", "name": "review", "peer": "new", "arguments": {"code": "x"}}),
        json!({"id": 12, "op": "prompt", "name": "old/greeting"}),
        json!({"id": 13, "op": "sleep", "ms": 1}),
        json!({"id": 14, "op": "listen", "peer": "new", "ms": 1}),
        json!({"id": 15, "op": "close", "unknown": "fields are ignored"}),
        json!({"id": 16, "op": "call", "tool": "add"}),
        json!({"id": 17, "op": "report"}),
        json!({"id": 18, "op": "sleep", "ms": 1}),
        json!({"id": 19, "op": "close"}),
        json!({"id": 20, "op": "listen"}),
    ];
    let (status, out) = place("batch_operations").batch_both(&input(&lines));
    assert_eq!(status, 0);
    let ids = |lines: &[Value]| -> Vec<Value> { lines.iter().map(|l| l["id"].clone()).collect() };
    assert_eq!(ids(&out), ids(&lines));
    insta::assert_snapshot!("operations", show(&out));
}

/// R3: what fails says how; a tool that says `isError` is complete; nothing of it is an exit status.
#[test]
fn failures() {
    let lines = [
        json!({"id": 1, "op": "call", "tool": "fail"}),
        json!({"id": 2, "op": "call", "tool": "rpc_error", "arguments": {"code": -5}}),
        json!({"id": 3, "op": "call", "tool": "echo"}),
        json!({"id": 4, "op": "call", "tool": "ad"}),
        json!({"id": 5, "op": "call", "tool": "ad", "peer": "new"}),
        json!({"id": 6, "op": "call", "tool": "x", "peer": "dies"}),
        json!({"id": 7, "op": "list_tools", "peer": "dies"}),
        json!({"id": 8, "op": "call", "tool": "x", "peer": "nobody"}),
        json!({"id": 9, "op": "read", "uri": "fake://nothing", "peer": "new"}),
        json!({"id": 10, "op": "call", "tool": "slow", "arguments": {"ms": 60_000}, "timeoutMs": 30}),
        json!({"id": 11, "op": "call", "tool": "slow", "arguments": {"ms": 60_000}, "cancelAfterMs": 30}),
        json!({"id": 13, "op": "listen", "peer": "new", "ms": 60_000, "timeoutMs": 30}),
        json!({"id": 14, "op": "listen", "peer": "new", "ms": 60_000, "cancelAfterMs": 30}),
    ];
    let (status, out) = place("batch_failures").batch_both(&input(&lines));
    assert_eq!(
        status, 2,
        "a line with a peer that is not configured is malformed"
    );
    assert_eq!(outcome(&out, &json!(1))["isError"], true);
    for id in [10, 11] {
        assert_eq!(outcome(&out, &json!(id))["error"]["mayHaveExecuted"], true);
    }
    insta::assert_snapshot!("failures", stable(&show(&out)));
}

/// Ids come back as they came, and malformed lines are named by their number.
#[test]
fn ids_and_malformed_lines() {
    let text = concat!(
        "\u{feff}{\"id\":1.0,\"op\":\"sleep\",\"ms\":0}\r\n",
        "\n",
        "nope\n",
        "[{\"id\":1,\"op\":\"report\"}]\n",
        "{\"op\":\"report\"}\n",
        "{\"id\":null,\"op\":\"report\"}\n",
        "{\"id\":true,\"op\":\"report\"}\n",
        "{\"id\":18446744073709551616,\"op\":\"cal\"}\n",
        "{\"id\":\"\\u0041\",\"op\":\"call\"}\n",
        "{\"id\":9,\"op\":\"call\",\"tool\":\"add\",\"arguments\":[1]}\n",
        "{\"id\":10,\"op\":\"call\",\"tool\":\"add\",\"timeoutMs\":\"1\"}\n",
        "{\"id\":11,\"op\":\"sleep\"}\n",
        "  \r\n",
        "{\"id\":12,\"op\":\"call\",\"tool\":\"add\",\"arguments\":null,\"peer\":7}\n",
        "{\"id\":\"e\",\"op\":\"sleep\",\"ms\":0}",
    );
    let place = place("batch_malformed");
    for driver in DRIVERS {
        let mut command = place.command(&["--driver", driver, "batch"]);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
        std::io::Write::write_all(&mut stdin, b"\n{\"id\":1,\"op\":\"\xff\"}").unwrap();
        drop(stdin);
        let out = cli_support::read_all(child.stdout.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(2));
        let out = out.replace('\r', "");
        let hide = |line: &str| match line.split_once("\"ms\":") {
            Some((before, _)) => format!("{before}…"),
            None => line.to_owned(),
        };
        let lines: Vec<String> = out.lines().map(hide).collect();
        insta::assert_snapshot!("malformed", lines.join("\n"));
    }
    // Nothing was sent to any tool.
    assert!(
        !place
            .methods("new")
            .iter()
            .any(|method| method == "tools/call")
    );
}

/// R42: event lines carry the operation's id, rise strictly, and come before its outcome.
#[test]
fn progress_comes_before_the_outcome() {
    let call = |id: u32, steps: u32| {
        json!({"id": id, "op": "call", "tool": "progress", "progress": true,
            "arguments": {"steps": steps, "everyMs": 1}, "background": true})
    };
    let lines = [
        call(1, 5),
        call(2, 5),
        json!({"id": 3, "op": "call", "tool": "progress", "arguments": {"steps": 3}}),
    ];
    let (status, out) = place("batch_progress").batch_both(&input(&lines));
    assert_eq!(status, 0);
    for id in [1, 2] {
        let own: Vec<&Value> = out.iter().filter(|line| line["id"] == id).collect();
        let (last, events) = own.split_last().unwrap();
        assert_eq!(last["outcome"], "complete");
        assert_eq!(events.len(), 5);
        for (index, event) in events.iter().enumerate() {
            let expected =
                json!({"id": id, "event": "progress", "progress": index + 1, "total": 5});
            assert_eq!(**event, expected);
        }
    }
    let own = out.iter().filter(|line| line["id"] == 3).count();
    assert_eq!(own, 1, "no progress unless it was asked for");
}

/// R30: `input` and `requestState` go onto the first request as they are.
#[test]
fn input_is_answered_in_another_line() {
    let place = place("batch_input");
    for driver in DRIVERS {
        let mut batch = place.batch(driver);
        batch.send(&json!({"id": 1, "op": "call", "tool": "ask"}));
        let (text, first) = batch.text();
        assert_eq!(first["outcome"], "input_required");
        assert_eq!(
            first["inputRequests"]["name"]["method"],
            "elicitation/create"
        );
        assert!(
            text.contains(r#""requestState":"round \"1\" \\ / "#),
            "{text}"
        );
        let again = batch.ask(&json!({"id": 2, "op": "call", "tool": "ask",
            "requestState": first["requestState"],
            "input": {"name": {"action": "accept", "content": {"name": "Ada"}}}}));
        assert_eq!(again["content"][0]["text"], "Hello, Ada");
        assert_eq!(batch.finish(), (0, vec![]));
    }
}

/// A foreground operation is answered before the next line starts; one in the background is not waited for.
#[test]
fn foreground_and_background() {
    let place = place("batch_order");
    for driver in DRIVERS {
        let mut batch = place.batch(driver);
        let slow = |id: &str, ms: u32, background: bool| {
            json!({"id": id, "op": "call", "tool": "slow", "arguments": {"ms": ms},
                "background": background})
        };
        batch.send(&slow("late", 300, true));
        batch.send(&slow("soon", 50, false));
        batch.send(
            &json!({"id": "last", "op": "call", "tool": "add", "arguments": {"a": 1, "b": 1}}),
        );
        let ids = [(); 3].map(|()| batch.line()["id"].clone());
        assert_eq!(ids, ["soon", "last", "late"]);
        assert_eq!(batch.finish(), (0, vec![]));
        let calls = place
            .methods("new")
            .iter()
            .filter(|m| *m == "tools/call")
            .count();
        assert_eq!(calls % 3, 0);
    }
}

/// Operations reach their server in the order of their lines, whether or not it is still connecting.
#[test]
fn operations_are_handed_over_in_order() {
    let slow_start = json!({"options": {"tools": ["a", "b", "c"]}, "steps": [
        {"sleep_ms": 150}, {"on": "server/discover"}, "«GOOD_DISCOVER»",
        {"on": "tools/call", "where": {"params.name": "a"}}, "«OK_RESULT»",
        {"on": "tools/call", "where": {"params.name": "b"}}, "«OK_RESULT»",
        {"on": "tools/call", "where": {"params.name": "c"}}, "«OK_RESULT»"]});
    let quick = fake(&["--tools=add"]);
    let place = Place::new(
        "batch_handed",
        &[("quick", quick), ("s", scripted(&slow_start))],
    );
    let lines = [
        json!({"id": 1, "op": "call", "tool": "a", "background": true, "timeoutMs": 5000}),
        json!({"id": 2, "op": "call", "tool": "b", "peer": "s", "background": true}),
        json!({"id": 3, "op": "call", "tool": "c", "background": true}),
    ];
    let (status, out) = place.batch_both(&input(&lines));
    assert_eq!(status, 0);
    for id in 1..=3 {
        assert_eq!(outcome(&out, &json!(id))["outcome"], "complete", "{out:?}");
    }
}

/// The wait for a server that is still connecting is no part of `timeoutMs`.
#[test]
fn connecting_is_no_part_of_the_timeout() {
    let slow_start = json!({"steps": [
        {"sleep_ms": 300}, {"on": "server/discover"}, "«GOOD_DISCOVER»"]});
    let place = Place::new("batch_connecting", &[("s", scripted(&slow_start))]);
    let lines = [
        json!({"id": 1, "op": "listen", "peer": "s", "timeoutMs": 250, "background": true}),
        json!({"id": 2, "op": "call", "tool": "echo", "peer": "s", "timeoutMs": 250}),
    ];
    let (_, out) = place.batch_both(&input(&lines));
    let call = outcome(&out, &json!(2));
    assert_eq!(call["outcome"], "complete", "{out:?}");
    assert!(
        call["ms"].as_u64().unwrap() >= 250,
        "ms counts from the start of the operation"
    );
    // The end of input ends it before its time, which began with the connection.
    assert_eq!(outcome(&out, &json!(1))["outcome"], "complete", "{out:?}");
}

/// R41: `timeoutMs` caps what the configuration allows, and does not extend it, with and without `peer`.
#[test]
fn the_configuration_caps_a_longer_timeout() {
    let mut strict = fake(&["--tools=slow"]);
    strict["absoluteTimeoutMs"] = 80.into();
    let place = Place::new(
        "batch_caps",
        &[("other", fake(&["--tools=add"])), ("strict", strict)],
    );
    let call =
        |id: u32| json!({"id": id, "op": "call", "tool": "slow", "arguments": {"ms": 60_000}});
    let mut lines = [call(1), call(2), call(3)];
    lines[0]["timeoutMs"] = 50_000.into();
    lines[1]["timeoutMs"] = 50_000.into();
    lines[1]["peer"] = "strict".into();
    lines[2]["timeoutMs"] = json!(2e1);
    let (_, out) = place.batch_both(&input(&lines));
    let remedies = out.iter().map(|line| {
        assert_eq!(line["error"]["kind"], "timeout", "{line}");
        line["error"]["remedy"].as_str().unwrap()
    });
    let names = |field: &'static str| move |remedy: &str| remedy.contains(field);
    let found: Vec<bool> = remedies.map(names("\"absoluteTimeoutMs\"")).collect();
    assert_eq!(found, [true, true, false]);
    let own = outcome(&out, &json!(3));
    assert_eq!(
        own["error"]["remedy"],
        "Give the operation more time with \"timeoutMs\"."
    );
}

/// What waits until it is known whose it is holds nothing up: it is cancelled in time, others are
/// answered, and `close` does not wait.
#[test]
fn a_server_that_does_not_settle_holds_nothing_up() {
    let mut stuck = scripted(&json!({"steps": [
        {"on": "server/discover"}, {"sleep_ms": 600_000}, "«GOOD_DISCOVER»"]}));
    stuck["probeTimeoutMs"] = 600_000.into();
    let place = Place::new(
        "batch_stuck",
        &[("quick", fake(&["--tools=add"])), ("stuck", stuck)],
    );
    let sum = json!({"a": 1, "b": 2});
    let lines = [
        json!({"id": 1, "op": "listen", "background": true}),
        json!({"id": 2, "op": "list_tools", "background": true}),
        json!({"id": 3, "op": "call", "tool": "add", "arguments": sum, "cancelAfterMs": 20}),
        json!({"id": 4, "op": "call", "tool": "add", "arguments": sum, "peer": "quick"}),
        json!({"id": 5, "op": "close"}),
    ];
    let (status, out) = place.batch_both(&input(&lines));
    let word = |id: u32| {
        let line = outcome(&out, &json!(id));
        let kind = line["error"]
            .get("kind")
            .unwrap_or_else(|| &line["outcome"]);
        kind.as_str().unwrap()
    };
    assert_eq!(
        (status, [1, 2, 3, 4, 5].map(word)),
        (0, ["closed", "closed", "cancelled", "complete", "complete"])
    );
}

/// R91: all that came is printed before the count, also what comes together with the end.
#[test]
fn every_notification_is_an_event() {
    let place = place("batch_listen_count");
    let touch = |id: u32| json!({"id": id, "op": "call", "tool": "touch_list"});
    let lines = [
        json!({"id": "one", "op": "listen", "peer": "new", "background": true}),
        json!({"id": "all", "op": "listen", "background": true}),
        json!({"id": 0, "op": "report"}),
        touch(1),
        touch(2),
        touch(3),
    ];
    let (status, out) = place.batch_both(&input(&lines));
    assert_eq!(status, 0);
    for id in ["one", "all"] {
        let own: Vec<&Value> = out.iter().filter(|line| line["id"] == id).collect();
        let (last, events) = own.split_last().unwrap();
        assert_eq!((&last["notifications"], events.len()), (&json!(3), 3));
        assert!(events.iter().all(|line| line["event"] == "notification"));
    }
}

/// Answers without the state of the question are no answers: the question comes again, which needs a word.
/// Fields that nobody knows are ignored.
#[test]
fn a_state_that_is_not_given_back_is_asked_for() {
    let place = place("batch_state");
    let given = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let lines = [
        json!({"id": 1, "op": "call", "tool": "ask"}),
        json!({"id": 2, "op": "call", "tool": "ask", "input": given, "requestSate": "x"}),
        json!({"id": 3, "op": "call", "tool": "add", "arguments": {"a": 1, "b": 2}, "input": given}),
    ];
    let mut child = place.command(&["batch"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &input(&lines)).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "warning: line 2: the server asks again; give its \"requestState\" back beside \"input\"\n"
    );
}

/// R91: notifications as events; without `ms` until the end of input, after what is in the background.
#[test]
fn listening() {
    let place = place("batch_listen");
    let lines = [
        json!({"id": 1, "op": "listen", "peer": "new", "background": true}),
        json!({"id": 2, "op": "sleep", "ms": 100}),
        json!({"id": 3, "op": "call", "tool": "touch_list", "background": true}),
        json!({"id": 4, "op": "call", "tool": "slow", "arguments": {"ms": 200}, "background": true}),
    ];
    let (status, out) = place.batch_both(&input(&lines));
    assert_eq!(status, 0);
    let last = out.last().unwrap();
    assert_eq!(
        (&last["id"], &last["notifications"]),
        (&json!(1), &json!(1))
    );
    let event = out
        .iter()
        .find(|line| line["event"] == "notification")
        .unwrap();
    assert_eq!(event["id"], 1);
    assert_eq!(event["peer"], "new");
    assert_eq!(event["method"], "notifications/tools/list_changed");
}

/// A listening operation in the foreground ends with the input, or before a `close`.
#[test]
fn listening_in_the_foreground_holds_nothing_up_for_ever() {
    let place = place("batch_listen_foreground");
    for driver in DRIVERS {
        let listen = json!({"id": 1, "op": "listen", "peer": "new"});
        let mut batch = place.batch(driver);
        batch.send(&listen);
        batch.send(&json!({"id": 2, "op": "sleep", "ms": 1}));
        batch.end_input();
        let (status, out) = batch.finish();
        assert_eq!(
            (status, &out[0]["outcome"], &out[0]["id"]),
            (0, &json!("complete"), &json!(1))
        );
        assert_eq!(out[1]["id"], 2);

        let mut batch = place.batch(driver);
        batch.send(&listen);
        batch.send(&json!({"id": 2, "op": "close"}));
        let first = batch.line();
        assert_eq!(
            (&first["id"], &first["error"]["kind"]),
            (&json!(1), &json!("closed"))
        );
        assert_eq!(batch.line()["outcome"], "complete");
        assert_eq!(batch.finish(), (0, vec![]));
    }
}

/// Lines of 16 MiB go in and come out.
#[test]
fn long_lines() {
    let place = place("batch_long");
    let text = "x".repeat(15 << 20);
    let line = json!({"id": 1, "op": "call", "tool": "new/echo", "arguments": {"text": text}});
    let (status, out) = place.batch_both(&input(&[line]));
    assert_eq!(status, 0);
    assert_eq!(
        out[0]["content"][0]["text"].as_str().unwrap().len(),
        15 << 20
    );
}

/// Hundreds of operations in the background each have one outcome.
#[test]
fn many_in_the_background() {
    let lines: Vec<Value> = (0..500)
        .map(|id| {
            json!({"id": id, "op": "call", "tool": "slow", "arguments": {"ms": id % 7},
                "background": true})
        })
        .collect();
    let (status, out) = place("batch_many").batch_both(&input(&lines));
    assert_eq!((status, out.len()), (0, 500));
    for id in 0..500 {
        assert_eq!(outcome(&out, &json!(id))["outcome"], "complete");
    }
}
