//! Case files: what may stand in them, and what a run makes of them.

use conformance::cases::{self, Case, Front, InWorld, Played, judge};
use serde_json::{Value, json};

/// A case of a good server that echoes.
fn good() -> Value {
    json!({
        "title": "A good server",
        "why": "R1",
        "certainty": "certain",
        "client": [{"op": "report"}, {"op": "call", "tool": "echo", "arguments": {"text": "hi"}, "expect": {"text": "hi"}}],
        "expect": {"era": "modern", "tools": ["echo"], "methods": ["server/discover", "tools/list", "tools/call"]},
        "server": {"options": {"tools": ["echo"]}},
    })
}

fn changed(place: &str, value: Value) -> Value {
    let mut case = good();
    match place.rsplit_once('/') {
        Some((parent, key)) => case.pointer_mut(parent).unwrap()[key] = value,
        None => case[place] = value,
    }
    case
}

fn parse(case: &Value) -> Result<Vec<Case>, String> {
    Case::parse("folder/case", &case.to_string())
}

fn one(case: &Value) -> Case {
    parse(case).unwrap().remove(0)
}

fn problem(case: &Value) -> String {
    parse(case).expect_err("it should be wrong")
}

fn play(case: &Case) -> Result<Played, String> {
    InWorld::as_written().play(case)
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    for (place, value, words) in [
        ("titel", json!("x"), "unknown member `titel`"),
        ("title", json!(""), "title: expected a text"),
        (
            "certainty",
            json!("sure"),
            "expected certain, likely or policy",
        ),
        ("certainty", json!("policy"), "says what was `decided`"),
        ("decided", json!("x"), "only a policy case"),
        ("reports", json!(["x/y"]), "not of the form owner/repo#1"),
        (
            "server",
            json!({"steps": [{"on": 1}]}),
            "script: steps[0].on",
        ),
        ("variants", json!({}), "there is none"),
        (
            "variants",
            json!({"a": {"reports": []}}),
            "unknown member `reports`",
        ),
        (
            "/client/0/op",
            json!("nonsense"),
            "client[0]: op: unknown `nonsense`",
        ),
        ("/client/0/expected", json!({}), "unknown member `expected`"),
        (
            "/client/1/tool",
            json!(1),
            "client[1]: tool: expected a text",
        ),
        ("/client/0/op", json!("listen"), "client[0]: ms"),
    ] {
        let problem = problem(&changed(place, value));
        assert!(problem.contains(words), "{place}: {problem}");
    }
}

#[test]
fn a_setting_that_does_not_exist_tests_nothing() {
    let case = one(&changed("config", json!({"timeoutms": 1})));
    let problem = play(&case).expect_err("the configuration is odd");
    assert!(problem.contains("timeoutMs"), "{problem}");
}

#[test]
fn variants_are_merged_into_their_case() {
    let variants = json!({
        "a": {"expect": {"era": "legacy"}},
        "b": {"client": [], "expect": {"methods": ["server/discover", "tools/list"]}},
    });
    let cases = parse(&changed("variants", variants)).unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["folder/case [a]", "folder/case [b]"]);
    let problems = judge(&cases[0], &play(&cases[0]).unwrap());
    assert_eq!(problems, ["srv.era: expected \"legacy\", got \"modern\""]);
    // Nothing waits for the server in the second one, so it is closed in the middle of its start.
    let problems = judge(&cases[1], &play(&cases[1]).unwrap());
    assert!(!problems.is_empty());
}

/// Everything that is not said is expected to be well.
#[test]
fn a_failure_or_a_violation_that_is_not_expected_is_a_problem() {
    let steps = json!([{"on": "tools/call"}, "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":[]}"]);
    let case = one(&changed("server", json!({ "steps": steps })));
    let problems = judge(&case, &play(&case).unwrap()).join("\n");
    for words in ["call.outcome", "srv.degraded: expected null"] {
        assert!(problems.contains(words), "{problems}");
    }
    let case = one(&changed(
        "server",
        json!({"era": "probe", "steps": [{"exit": 1}]}),
    ));
    let problems = judge(&case, &play(&case).unwrap()).join("\n");
    for words in [
        "srv.state: expected \"ready\"",
        "srv.failure: expected null",
    ] {
        assert!(problems.contains(words), "{problems}");
    }
}

#[test]
fn what_a_script_asserts_is_a_problem_when_it_is_broken() {
    let case = one(&changed(
        "server",
        json!({"steps": [{"forbid": "tools/call"}]}),
    ));
    let problems = judge(&case, &play(&case).unwrap()).join("\n");
    assert!(
        problems.contains("tools/call, which is forbidden"),
        "{problems}"
    );
}

/// A front that panics where the core in the World would be played.
struct Broken;

impl Front for Broken {
    fn name(&self) -> String {
        "broken".into()
    }

    fn play(&self, _: &Case) -> Result<Played, String> {
        panic!("no more")
    }
}

#[test]
fn pending_cases_are_listed_until_they_hold() {
    let cases = [
        one(&good()),
        one(&changed("pending", json!("nothing"))),
        {
            let mut case = changed("pending", json!("a miracle"));
            case["expect"]["era"] = json!("legacy");
            one(&case)
        },
        one(&changed("/expect/era", json!("legacy"))),
    ];
    let outcome = cases::run(&InWorld::as_written(), &cases, 3);
    assert_eq!(outcome.held, 1);
    let name = "folder/case".to_owned();
    assert_eq!(outcome.pending, [(name, "a miracle".to_owned())]);
    let failed: Vec<&str> = outcome
        .failed
        .iter()
        .flat_map(|(_, problems)| problems.iter().map(String::as_str))
        .collect();
    assert_eq!(
        failed,
        [
            "holds now: remove \"pending\": \"nothing\"",
            "srv.era: expected \"legacy\", got \"modern\""
        ]
    );
    let text = outcome.to_string();
    assert!(text.starts_with("the core in the World: 1 cases hold, 1 are pending, 2 fail\n"));
    assert!(text.contains("  FAILED folder/case\n    srv.era"), "{text}");
}

#[test]
fn a_front_that_panics_holds_no_case() {
    let outcome = cases::run(&Broken, &[one(&good())], 1);
    assert_eq!(
        outcome.failed,
        [("folder/case".to_owned(), vec!["no more".to_owned()])]
    );
}
