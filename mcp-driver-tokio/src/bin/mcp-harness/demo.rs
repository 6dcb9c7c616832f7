//! `demo`: what this client does, shown with servers of its own.
//!
//! The servers are this very program (`fake-server`), so nothing has to be installed and nothing leaves
//! the machine. Every step checks what came back; the demo fails if anything is not as it says.

use std::env;
use std::fs;
use std::io::{self, IsTerminal};

use mcp_proto::config::PeerConfig;
use mcp_proto::report::{PeerReport, PeerState};
use mcp_proto::wire::Json;
use mcp_proto::{Config, Ended, Error, ErrorKind, Operation, Options, Outcome, Reply};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, Reader, coloured, one_line, print};
use crate::session::{self, Session};

/// A server that takes its standard output for a log, as some do while they start.
const CHATTY: &str = r#"{"options": {"name": "chatty"}, "steps": [
    "chatty 1.0 starting up", "listening on stdio ...",
    {"on": "server/discover"}, "«GOOD_DISCOVER»"]}"#;

/// Runs the demo.
pub(crate) fn run(global: &Global) -> Result<Exit, Failure> {
    if global.json {
        let remedy = "Leave --json out, or use another command.";
        return Err(Failure::usage("the demo is for people", remedy));
    }
    print(INTRODUCTION);
    crate::with_config(global, config()?, |session, _| show(session))
}

const INTRODUCTION: &str = "\
This starts four small MCP servers on this machine and talks to all of them at once.
Nothing is installed, and nothing goes over a network.
";

fn config() -> Result<Config, Failure> {
    let program = env::current_exe()
        .ok()
        .and_then(|path| path.to_str().map(str::to_owned))
        .ok_or_else(|| unexpected("this program does not know where it is installed"))?;
    let server = |name: &str, options: &[&str]| {
        let arguments = ["fake-server"].iter().chain(options).copied();
        PeerConfig::stdio(name, program.as_str(), arguments)
    };
    let tools = "--tools=add,ask,echo";
    let modern = server("modern", &["--era=modern", "--name=modern", tools]);
    let mut allowed = server(
        "veteran",
        &["--era=legacy", "--name=veteran", "--tools=echo"],
    );
    allowed.allow_legacy = true;
    let refused = server(
        "stranger",
        &["--era=legacy", "--name=stranger", "--tools=echo"],
    );
    let chatty = server("chatty", &["--script-json", CHATTY]);
    Ok(Config::new(vec![modern, allowed, refused, chatty]))
}

fn show(session: &dyn Session) -> Result<Exit, Failure> {
    connect(session)?;
    call(session)?;
    refuse(session)?;
    answer(session)?;
    close(session)?;
    print(
        "\nThat is all. Next: write .mcp.json, then try `mcp-harness report` and `mcp-harness tools`.\n",
    );
    Ok(Exit::Good)
}

fn connect(session: &dyn Session) -> Result<(), Failure> {
    title("1. Connect");
    print(
        "Each server is asked first whether it speaks the current protocol. Older servers are spoken to\n\
         only where the configuration allows it: \"veteran\" is, \"stranger\" is not, so that one is\n\
         refused, and the others go on. \"chatty\" logs to standard output before its first message.\n\n",
    );
    session::settle(session)?;
    let report = session.report();
    print(&report.to_string());
    let peer = |name: &str| report.peers.iter().find(|peer| peer.name == name);
    let ready = |name| peer(name).is_some_and(|peer| peer.state == PeerState::Ready);
    let refused = |peer: &PeerReport| {
        let kind = peer.failure.as_ref().map(|failure| failure.kind);
        peer.state == PeerState::Failed && kind == Some(ErrorKind::LegacyNotAllowed)
    };
    check(
        ready("modern") && ready("veteran") && ready("chatty"),
        "three servers are ready",
    )?;
    check(
        peer("stranger").is_some_and(refused),
        "the old server without permission was refused",
    )?;
    let noise = session
        .diagnoses()
        .iter()
        .any(|peer| peer.report.name == "chatty" && peer.counters.noise_lines == 2);
    check(
        noise,
        "two lines of noise were put aside, not taken for messages",
    )
}

fn call(session: &dyn Session) -> Result<(), Failure> {
    title("2. Call tools");
    print(
        "A tool that one server has is called by its name. Several have \"echo\", so that name leads\n\
         nowhere: each is called as <server>/echo.\n\n",
    );
    let sum = tool(session, "add", json(r#"{"a": 2, "b": 40}"#));
    show_call(r#"add {"a": 2, "b": 40}"#, &sum);
    check(
        structured(&sum).is_some_and(|json| json.as_str() == r#"{"sum":42}"#),
        "the answer is structured: {\"sum\":42}",
    )?;
    let hello = || json(r#"{"text": "hello"}"#);
    for name in ["modern/echo", "veteran/echo"] {
        let echo = tool(session, name, hello());
        show_call(&format!(r#"{name} {{"text": "hello"}}"#), &echo);
        check(
            text(&echo).as_deref() == Some("hello"),
            "the text came back",
        )?;
    }
    Ok(())
}

fn refuse(session: &dyn Session) -> Result<(), Failure> {
    title("3. Be wrong");
    print("What no server has is refused here, and nothing is sent.\n\n");
    let wrong = |name: &str| {
        let ended = tool(session, name, None);
        show_call(name, &ended);
        failure(&ended).map(Error::kind)
    };
    check(
        wrong("ad") == Some(ErrorKind::ToolNotFound),
        "an unknown tool is refused, with a suggestion",
    )?;
    check(
        wrong("echo") == Some(ErrorKind::AmbiguousTool),
        "an ambiguous name is refused, with the names to use",
    )
}

fn answer(session: &dyn Session) -> Result<(), Failure> {
    title("4. Answer a question");
    print(
        "A server may need something before it can answer. It says so, keeps nothing, and is called\n\
         again with the answer and the state that it handed out.\n\n",
    );
    let first = tool(session, "ask", None);
    show_call("ask", &first);
    let Outcome::InputRequired(input) = &first.outcome else {
        return Err(unexpected("the server asks for a name"));
    };
    let options = Options {
        input_responses: json(r#"{"name": {"action": "accept", "content": {"name": "Ada"}}}"#),
        request_state: input.state.as_ref().map(|state| state.as_json().clone()),
        ..Options::default()
    };
    let second = session::run(session, Operation::call("ask", None).with(options));
    show_call("ask, with the answer \"Ada\"", &second);
    check(
        text(&second).is_some_and(|text| text.contains("Ada")),
        "the server has its answer",
    )
}

fn close(session: &dyn Session) -> Result<(), Failure> {
    title("5. Close");
    session.close();
    check(
        children().is_none_or(|left| left == 0),
        "no server is left running",
    )
}

fn tool(session: &dyn Session, tool: &str, arguments: Option<Json>) -> Ended {
    session::run(session, Operation::call(tool, arguments))
}

/// What was called, and what came back.
fn show_call(call: &str, ended: &Ended) {
    let came = match &ended.outcome {
        Outcome::Complete(Reply::Call(result)) => output::text(result, Reader::Program),
        Outcome::Complete(_) => String::new(),
        Outcome::InputRequired(input) => format!("asks: {}", input.prompt()),
        Outcome::Failed(error) => format!("error: {error}\nhelp: {}", error.remedy()),
    };
    let mut shown = format!("  > {call}\n");
    for line in came.lines() {
        shown.push_str(&format!("    {}\n", one_line(line)));
    }
    print(&shown);
}

fn structured(ended: &Ended) -> Option<&Json> {
    match &ended.outcome {
        Outcome::Complete(Reply::Call(result)) => result.structured_content.as_ref(),
        _ => None,
    }
}

fn text(ended: &Ended) -> Option<String> {
    match &ended.outcome {
        Outcome::Complete(Reply::Call(result)) => Some(result.text()),
        _ => None,
    }
}

fn failure(ended: &Ended) -> Option<&Error> {
    match &ended.outcome {
        Outcome::Failed(error) => Some(error),
        _ => None,
    }
}

fn json(text: &str) -> Option<Json> {
    Json::parse(text).ok()
}

fn title(text: &str) {
    let title = coloured(text, "36", io::stdout().is_terminal());
    print(&format!("\n{title}\n"));
}

fn check(as_expected: bool, what: &str) -> Result<(), Failure> {
    if !as_expected {
        return Err(unexpected(what));
    }
    let ok = coloured("ok", "32", io::stdout().is_terminal());
    print(&format!("  {ok}: {what}\n"));
    Ok(())
}

fn unexpected(what: &str) -> Failure {
    Failure {
        messages: vec![format!("the demo did not go as expected: {what}")],
        remedy: "Report this with everything above; it is a fault of this program.".into(),
        exit: Exit::CallFailed,
    }
}

/// How many child processes there are, where the system says so.
fn children() -> Option<usize> {
    let mut count = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let children = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        count += children.split_whitespace().count();
    }
    Some(count)
}
