//! Every command with its human and its JSON output, the same through both drivers.
#![cfg(all(feature = "cli", unix))]

mod cli_support;

use cli_support::{Done, Place, fake, legacy, scripted, stable};
use serde_json::{Value, json};

fn place(name: &str) -> Place {
    let new = fake(&["--name=new", "--tools=add,ask,content,echo,fail,progress"]);
    let old = legacy(&["--name=old", "--tools=echo,env"]);
    let stranger = fake(&["--era=legacy", "--tools=echo"]);
    Place::new(name, &[("new", new), ("old", old), ("stranger", stranger)])
}

fn shown(done: &Done) -> String {
    stable(&done.to_string())
}

/// R111.
#[test]
fn report() {
    let place = place("report");
    insta::assert_snapshot!("report", shown(&place.run_both(&["report"])));
    insta::assert_snapshot!("report_json", shown(&place.run_both(&["report", "--json"])));
}

/// R80: canonical names.
#[test]
fn lists() {
    let place = place("lists");
    for (name, args) in [
        ("tools", &["tools"][..]),
        ("resources", &["resources"]),
        ("templates", &["resources", "--templates"]),
        ("prompts", &["prompts"]),
    ] {
        insta::assert_snapshot!(name, shown(&place.run_both(args)));
    }
    let json = |args: &[&str]| place.run_both(args).json();
    let names = |list: Value, key: &str| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|item| item[key].as_str().unwrap().to_owned())
            .collect()
    };
    let tools = json(&["tools", "--json"]);
    assert_eq!(
        names(tools.clone(), "name"),
        [
            "add", "ask", "content", "env", "fail", "new/echo", "old/echo", "progress"
        ],
    );
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(
        names(tools, "peer"),
        ["new", "new", "new", "old", "new", "new", "old", "new"],
    );
    for list in [
        &["resources"][..],
        &["resources", "--templates"],
        &["prompts"],
    ] {
        let mut peers = names(json(&[list, &["--json"]].concat()), "peer");
        peers.dedup();
        assert_eq!(peers.first().map(String::as_str), Some("new"), "{list:?}");
        assert_eq!(peers.last().map(String::as_str), Some("old"), "{list:?}");
    }
    assert_eq!(
        names(json(&["resources", "--json"]), "uri"),
        [
            "new/fake://blob/pixel",
            "new/fake://text/readme",
            "old/fake://blob/pixel",
            "old/fake://text/readme",
        ],
    );
    assert_eq!(
        names(json(&["resources", "--templates", "--json"]), "uriTemplate"),
        ["new/fake://notes/{id}", "old/fake://notes/{id}"],
    );
    assert_eq!(
        names(json(&["prompts", "--json", "--peer", "new"]), "name"),
        ["greeting", "review"],
    );
}

#[test]
fn one_peer_starts_no_other() {
    let place = place("one_peer");
    let done = place.run_both(&["report", "--json", "--peer", "old"]);
    assert_eq!(done.json()["peers"][0]["tools"], json!(["echo", "env"]));
    assert_eq!(place.methods("new"), Vec::<String>::new());
    assert_eq!(done.status, 0);
}

#[test]
fn call() {
    let place = place("call");
    let add = ["call", "add", r#"{"a":1,"b":2}"#];
    insta::assert_snapshot!("call", shown(&place.run_both(&add)));
    insta::assert_snapshot!(
        "call_json",
        shown(&place.run_both(&[&add[..], &["--json"]].concat()))
    );
    insta::assert_snapshot!("call_content", shown(&place.run_both(&["call", "content"])));
    let done = place.run_both(&["call", "progress", r#"{"steps":2}"#, "--progress"]);
    insta::assert_snapshot!("call_progress", shown(&done));
}

/// Structured content is shown where a tool says nothing in words.
#[test]
fn call_without_text() {
    let answer = json!({"jsonrpc": "2.0", "id": "ID", "result": {
        "resultType": "complete", "content": [], "structuredContent": {"b": 1, "a": [1.0]}}});
    let answer = answer.to_string().replace("\"ID\"", "$ID");
    let server = scripted(&json!({"steps": [{"on": "tools/call"}, answer]}));
    let place = Place::new("call_without_text", &[("s", server)]);
    let done = place.run_both(&["call", "echo"]);
    assert_eq!(done.json(), json!({"b": 1, "a": [1.0]}));
    assert!(done.stdout.contains("\n  \""), "pretty: {done}");
}

#[test]
fn arguments_come_from_a_file_or_from_standard_input() {
    let place = place("arguments");
    std::fs::write(place.path().join("args.json"), r#"{"a":20,"b":22}"#).unwrap();
    let done = place.run_both(&["call", "add", "@args.json"]);
    assert_eq!(done.stdout, "{\"sum\":42}\n");
    let mut child = place.command(&["call", "add", "-"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, br#"{"a":2,"b":3}"#).unwrap();
    drop(stdin);
    assert_eq!(
        cli_support::read_all(child.stdout.take().unwrap()),
        "{\"sum\":5}\n"
    );
    assert!(child.wait().unwrap().success());
}

#[test]
fn read_and_prompt() {
    let place = place("read_and_prompt");
    for (name, args) in [
        ("read", &["read", "new/fake://text/readme"][..]),
        ("read_blob", &["read", "old/fake://blob/pixel"]),
        ("read_json", &["read", "new/fake://text/readme", "--json"]),
        ("prompt", &["prompt", "old/greeting"]),
        (
            "prompt_json",
            &["prompt", "new/review", r#"{"code":"x"}"#, "--json"],
        ),
    ] {
        insta::assert_snapshot!(name, shown(&place.run_both(args)));
    }
}

/// R18, R62, R111: evidence, noise, standard error, and one remedy each.
#[test]
fn doctor() {
    let noisy = json!({"steps": [
        "starting", {"stderr": "a warning\n"}, {"on": "server/discover"}, "«GOOD_DISCOVER»"]});
    let dies = json!({"steps": [
        {"stderr": "cannot open the database\n"}, {"exit": 3}, {"on": "server/discover"}]});
    let servers = [
        ("dies", scripted(&dies)),
        ("good", fake(&["--tools=echo"])),
        ("noisy", scripted(&noisy)),
        ("stranger", fake(&["--era=legacy"])),
    ];
    let place = Place::new("doctor", &servers);
    insta::assert_snapshot!("doctor", shown(&place.run_both(&["doctor"])));
    let json = place.run_both(&["doctor", "--json"]).json();
    let peer = |index: usize| &json["peers"][index];
    assert_eq!(peer(0)["failure"]["kind"], "closed");
    assert_eq!(peer(0)["stderr"], json!(["cannot open the database"]));
    assert_eq!(peer(1)["remedy"], "Nothing to do.");
    assert_eq!(peer(2)["stdoutNoise"], json!(["starting"]));
    assert_eq!(peer(3)["failure"]["kind"], "legacyNotAllowed");
    assert!(peer(3)["evidence"][0].as_str().unwrap().contains("-32601"));
}

/// Which of several programs of one name it was is often the question. What a variable stands for is not shown.
#[test]
fn doctor_says_which_program_was_found() {
    let place = Place::new("doctor_program", &[]);
    let server = |command: &str| json!({"command": command, "args": ["-c", "exit 3"]});
    let servers = json!({"a": server("sh"), "b": server("/bin/sh"), "c": server("${SHELL_FOR_C}")});
    place.write(&json!({"mcpServers": servers}).to_string());
    for json in [false, true] {
        let mut command = place.command(&["doctor"]);
        command.env("SHELL_FOR_C", "sh");
        if json {
            command.arg("--json");
        }
        let output = command.output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        if json {
            let document: Value = serde_json::from_str(&shown).unwrap();
            let programs = ["/peers/0/program", "/peers/1/program", "/peers/2/program"];
            let programs = programs.map(|at| document.pointer(at).and_then(Value::as_str));
            assert!(
                programs[0].is_some_and(|path| path.ends_with("/sh")),
                "{shown}"
            );
            assert_eq!(programs[1..], [None, None], "{shown}");
        } else {
            let lines: Vec<&str> = shown
                .lines()
                .filter(|line| line.contains("program"))
                .collect();
            assert_eq!(lines.len(), 1, "{shown}");
            assert!(lines[0].starts_with("  program   /"), "{shown}");
        }
    }
}

/// What is shown can be pasted into a shell, which takes nothing in it for its own.
#[test]
fn doctor_shows_a_command_that_can_be_run() {
    let place = Place::new("doctor_command", &[]);
    let script = "echo \"it's $X $(y) $Z\"; exit 3";
    let server = json!({"command": "/bin/sh", "args": ["-c", script, "${ARG_FOR_A}"], "cwd": "/"});
    place.write(&json!({"mcpServers": {"a": server}}).to_string());
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        let output = command.env("ARG_FOR_A", "secret").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let ran = r#"/bin/sh -c 'echo "it'\''s $X $(y) $Z"; exit 3' '${ARG_FOR_A}'"#;
    let shown = run(&["doctor"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[1..3],
        [&*format!("  ran       {ran}"), "  cwd       /"]
    );
    let document: Value = serde_json::from_str(&run(&["doctor", "--json"])).unwrap();
    assert_eq!(document["peers"][0]["command"], ran);
    assert_eq!(document["peers"][0]["cwd"], "/");
    assert!(!shown.contains("secret"), "{shown}");
}

/// The last lines tell most, and a server may write any number.
#[test]
fn doctor_shows_the_last_lines_of_a_server() {
    let noise = |count: usize| {
        let lines: Vec<Value> = (0..count).map(|n| json!(format!("noise {n}."))).collect();
        let steps = [
            lines,
            vec![json!({"on": "server/discover"}), json!("«GOOD_DISCOVER»")],
        ];
        scripted(&json!({"steps": steps.concat()}))
    };
    let place = Place::new("doctor_lines", &[("few", noise(20)), ("many", noise(60))]);
    let done = place.run_both(&["doctor"]);
    let (few, many) = done.stdout.split_once("\nmany\n").unwrap();
    let lines = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("  stdout"))
            .count()
    };
    assert_eq!((lines(few), lines(many)), (20, 21), "{done}");
    assert!(!few.contains("more lines"), "{done}");
    assert!(
        many.contains("  stdout    [40 more lines before these]\n"),
        "{done}"
    );
    assert!(
        many.contains(" noise 40.") && many.contains(" noise 59."),
        "{done}"
    );
    assert!(!many.contains(" noise 39."), "{done}");
}

#[test]
fn demo() {
    let place = Place::new("demo", &[]);
    let done = place.run_both(&["demo"]);
    assert_eq!(done.status, 0, "{done}");
    insta::assert_snapshot!("demo", shown(&done));
}

/// For programs: what was checked, and nothing else on standard output.
#[test]
fn demo_json() {
    let place = Place::new("demo_json", &[]);
    let done = place.run(&["demo", "--json"]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done}");
    let document = done.json();
    assert_eq!(document["ok"], true);
    let peers = document["report"]["peers"].as_array().unwrap();
    let states: Vec<_> = peers.iter().map(|peer| &peer["state"]).collect();
    let mut expected = ["ready"; 8];
    expected[5] = "failed";
    assert_eq!(states, expected);
    let steps = document["steps"].as_array().unwrap();
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("demo_json", steps.join("\n"));
}

/// R110: what a server writes reaches no terminal as a command, and no error forges a line.
#[test]
fn control_characters_of_servers_are_escaped_in_messages() {
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":7,"message":"a\u001b[2J\nerror: b"}}"#;
    let server = scripted(&json!({"steps": [{"on": "tools/call"}, error]}));
    let place = Place::new("control", &[("s", server)]);
    let done = place.run_both(&["call", "echo"]);
    assert_eq!(done.status, 1);
    insta::assert_snapshot!("control_characters", shown(&done));
}
