//! `demo`: what this client does, shown with servers of its own.
//!
//! The servers are this very program (`fake-server`), so nothing has to be installed and nothing leaves
//! the machine. Every step checks what came back; the demo fails if anything is not as it says.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::time::Duration;

use mcp_proto::config::PeerConfig;
use mcp_proto::report::{PeerReport, PeerState, Report};
use mcp_proto::streaming::Streaming;
use mcp_proto::types::{InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{Config, Ended, Error, ErrorKind, Operation, Options, Outcome, Reply};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, Reader, coloured, json, one_line, print};
use crate::program;
use crate::session::{self, Session};

/// A server that takes its standard output for a log, as some do while they start.
const CHATTY: &str = r#"{"options": {"name": "chatty"}, "steps": [
    "chatty 1.0 starting up", "listening on stdio ...",
    {"on": "server/discover"}, "«GOOD_DISCOVER»"]}"#;

/// A server that dies in the middle of some calls, with a stack trace.
const FRAGILE: &str = r#"{"options": {"name": "fragile", "tools": ["crash"]}, "era": "modern", "steps": [
    {"on": "tools/call", "where": {"params.name": "crash"}},
    {"stderr": "Error: out of memory\n    at crash (server.js:7:3)\n\nNode.js v22.0.0\n"},
    {"exit": 1}]}"#;

/// A server that answers a call with content that is none: a text without its text.
const LIAR: &str = r#"{"options": {"name": "liar"}, "era": "modern", "steps": [
    {"on_each": "tools/call", "emit":
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\"}]}}"}]}"#;

/// A server that takes a call and never answers.
const SLEEPY: &str = r#"{"options": {"name": "sleepy"}, "era": "modern", "steps": [
    {"on_each": "tools/call", "emit": []}]}"#;

/// A server that dies in the middle of a streamed call, having said where to go on, and knows how to go on
/// from there.
const TELLER: &str = r#"{"options": {"name": "teller", "tools": ["tell"]}, "era": "modern", "steps": [
    {"on_each": "tools/call", "where": {"params._meta.checkpoint": "half"}, "emit":
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"Once upon a time there was an end.\"}]}}"},
    {"on": "tools/call", "where": {"params._meta.checkpoint": null}},
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$PTOKEN,\"progress\":1,\"message\":\"Once upon a time\",\"_meta\":{\"checkpoint\":\"half\"}}}",
    {"exit": 1}]}"#;

/// How long its answer is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs the demo.
pub(crate) fn run(global: &Global) -> Result<Exit, Failure> {
    let mut demo = Demo {
        json: global.json,
        ..Demo::default()
    };
    demo.print(INTRODUCTION);
    let done = crate::with_config(global, config()?, |session, _| {
        demo.show(session).map(|()| Exit::Good)
    });
    if !demo.json {
        return done;
    }
    output::print_json(demo.document(done.as_ref().err()));
    Ok(done.unwrap_or_else(|failure| failure.exit))
}

/// The demo as it goes: for people what happens, for programs what was checked.
#[derive(Default)]
struct Demo {
    json: bool,
    step: &'static str,
    checks: Vec<Check>,
    report: Option<Report>,
}

/// Something that must be so, and whether it is.
struct Check {
    step: &'static str,
    ok: bool,
    what: &'static str,
}

const INTRODUCTION: &str = "\
This starts eight small MCP servers on this machine and talks to all of them at once.
Nothing is installed, and nothing goes over a network.
";

const CONNECT: &str = "\
Each server is asked first whether it speaks the current protocol. Older servers are spoken to\n\
only where the configuration allows it: \"veteran\" is, \"stranger\" is not, so that one is\n\
refused, and the others go on. \"chatty\" logs to standard output before its first message.\n\n";

const LET_DOWN: &str = "\
Four servers are called at the same time. One of them is good; \"fragile\" dies in the middle of\n\
its call, \"liar\" answers nonsense, and \"sleepy\" never answers and is given one second. Each\n\
failure is the caller's to know, with what to do; whether the call may have been executed\n\
decides if it is safe to repeat. No other server notices.\n\n";

const RECOVER: &str = "\
A server that died is started again after a moment. What had been sent to it is not repeated,\n\
because that might run it twice; what comes now waits until it is back.\n\n";

const STREAM: &str = "\
\"teller\" tells its answer piece by piece, and dies in the middle. It had said how far it was,\n\
so it is started again and asked to go on from there.\n\n";

const CALL: &str = "\
A tool that one server has is called by its name. Several have \"echo\", so that name leads\n\
nowhere: each is called as <server>/echo.\n\n";

const ANSWER: &str = "\
A server may need something before it can answer. It says so, keeps nothing, and is called\n\
again with the answer and the state that it handed out.\n\n";

const END: &str = "\
\nThat is all. Next: write .mcp.json, then try `mcp-harness report` and `mcp-harness tools`.\n";

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
    let scripted = |name, script| server(name, &["--script-json", script]);
    let mut teller = scripted("teller", TELLER);
    // What the operator knows of it: where it takes checkpoints, and that telling twice does no harm.
    teller.checkpoint_meta_key = Some("checkpoint".to_owned());
    teller.idempotent_tools = BTreeSet::from(["tell".to_owned()]);
    Ok(Config::new(vec![
        modern,
        allowed,
        refused,
        scripted("chatty", CHATTY),
        scripted("fragile", FRAGILE),
        scripted("liar", LIAR),
        scripted("sleepy", SLEEPY),
        teller,
    ]))
}

impl Demo {
    fn show(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.connect(session)?;
        self.call(session)?;
        self.refuse(session)?;
        self.answer(session)?;
        self.let_down(session)?;
        self.recover(session)?;
        self.stream(session)?;
        self.close(session)?;
        self.print(&program::typed(END));
        Ok(())
    }

    fn connect(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(1, "Connect");
        self.print(CONNECT);
        session::settle(session)?;
        let report = session.report();
        self.print(&report.to_string());
        self.report = Some(report.clone());
        let peer = |name: &str| report.peers.iter().find(|peer| peer.name == name);
        let ready = |peer: &&PeerReport| peer.state == PeerState::Ready;
        let refused = |peer: &PeerReport| {
            let kind = peer.failure.as_ref().map(|failure| failure.kind);
            peer.state == PeerState::Failed && kind == Some(ErrorKind::LegacyNotAllowed)
        };
        self.check(
            report.peers.iter().filter(ready).count() == 7,
            "seven servers are ready",
        )?;
        self.check(
            peer("stranger").is_some_and(refused),
            "the old server without permission was refused",
        )?;
        let noise = session
            .diagnoses()
            .iter()
            .any(|peer| peer.report.name == "chatty" && peer.counters.noise_lines == 2);
        self.check(
            noise,
            "two lines of noise were put aside, not taken for messages",
        )
    }

    fn call(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(2, "Call tools");
        self.print(CALL);
        let sum = tool(session, "add", arguments(r#"{"a": 2, "b": 40}"#));
        self.show_call(r#"add {"a": 2, "b": 40}"#, &sum);
        self.check(
            structured(&sum).is_some_and(|json| json.as_str() == r#"{"sum":42}"#),
            "the answer is structured: {\"sum\":42}",
        )?;
        let hello = || arguments(r#"{"text": "hello"}"#);
        for name in ["modern/echo", "veteran/echo"] {
            let echo = tool(session, name, hello());
            self.show_call(&format!(r#"{name} {{"text": "hello"}}"#), &echo);
            self.check(
                text(&echo).as_deref() == Some("hello"),
                "the text came back",
            )?;
        }
        Ok(())
    }

    fn refuse(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(3, "Be wrong");
        self.print("What no server has is refused here, and nothing is sent.\n\n");
        let wrong = |demo: &Self, name: &str| {
            let ended = tool(session, name, None);
            demo.show_call(name, &ended);
            failure(&ended).map(Error::kind)
        };
        self.check(
            wrong(self, "ad") == Some(ErrorKind::ToolNotFound),
            "an unknown tool is refused, with a suggestion",
        )?;
        self.check(
            wrong(self, "echo") == Some(ErrorKind::AmbiguousTool),
            "an ambiguous name is refused, with the names to use",
        )
    }

    fn answer(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(4, "Answer a question");
        self.print(ANSWER);
        let first = tool(session, "ask", None);
        self.show_call("ask", &first);
        let Outcome::InputRequired(pending) = first.outcome else {
            return Err(unexpected("the server asks for a name"));
        };
        let ada = arguments(r#"{"action": "accept", "content": {"name": "Ada"}}"#);
        let answers = ada.into_iter().map(InputResponse::raw);
        let answers = answers.fold(InputResponses::new(), |all, ada| all.with("name", ada));
        let second = session::run(session, Operation::resume(pending.continuation, answers));
        self.show_call("ask, with the answer \"Ada\"", &second);
        self.check(
            text(&second).is_some_and(|text| text.contains("Ada")),
            "the server has its answer",
        )
    }

    fn let_down(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(5, "Be let down");
        self.print(LET_DOWN);
        let names = ["modern/echo", "crash", "liar/echo", "sleepy/echo"];
        let submit = |name: &str| {
            let hello = arguments(r#"{"text": "hello"}"#);
            // As if it were the server's "timeoutMs". Only the one that never answers needs it.
            let options = Options {
                idle_timeout: (name == "sleepy/echo").then_some(PATIENCE),
                ..Options::default()
            };
            session.submit(Operation::call(name, hello).with(options))
        };
        let calls = names.map(|name| (name, submit(name)));
        let ended = calls.map(|(name, submitted)| {
            let ended = session::wait(submitted, |_| {});
            self.show_call(name, &ended);
            ended
        });
        let [good, died, lied, slept] = &ended;
        let is = |ended, kind| {
            failure(ended).is_some_and(|error| error.kind() == kind && error.may_have_executed())
        };
        self.check(
            text(good).as_deref() == Some("hello"),
            "the good server answered",
        )?;
        self.check(
            is(died, ErrorKind::Closed),
            "the call of a server that died says so, and what the server said last",
        )?;
        self.check(
            is(lied, ErrorKind::SchemaViolation),
            "an answer that is none was refused",
        )?;
        self.check(
            is(slept, ErrorKind::Timeout),
            "a call without an answer has ended in time",
        )?;
        Ok(())
    }

    fn recover(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(6, "Recover");
        self.print(RECOVER);
        let hello = arguments(r#"{"text": "hello again"}"#);
        let ended = session::run(session, Operation::call("fragile/echo", hello));
        self.show_call("fragile/echo", &ended);
        self.check(
            text(&ended).as_deref() == Some("hello again"),
            "the server that died is back",
        )?;
        let report = session.report();
        let table = report.to_string();
        let table = table.split("\n\n").next().unwrap_or_default();
        self.print(&format!("\n{table}\n"));
        let peer = |name: &str| report.peers.iter().find(|peer| peer.name == name);
        let failed: Vec<&str> = report
            .peers
            .iter()
            .filter(|peer| peer.state == PeerState::Failed)
            .map(|peer| peer.name.as_str())
            .collect();
        self.check(
            failed == ["stranger"] && peer("liar").is_some_and(|peer| peer.degraded.is_some()),
            "one server is marked as degraded, the others are as before",
        )
    }

    fn stream(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(7, "Stream");
        self.print(STREAM);
        let options = Options {
            stream: Some(Streaming::default()),
            ..Options::default()
        };
        let ended = session::run(session, Operation::call("tell", None).with(options));
        self.show_call("tell, streamed", &ended);
        self.check(
            matches!(&ended.outcome, Outcome::Complete(Reply::Stream(stream))
                if stream.attempts == 2 && stream.text == "Once upon a time there was an end."),
            "the text is whole, at the second attempt",
        )
    }

    fn close(&mut self, session: &dyn Session) -> Result<(), Failure> {
        self.title(8, "Close");
        session.close();
        self.check(
            children().is_none_or(|left| left == 0),
            "no server is left running",
        )
    }

    /// What was called, and what came back.
    fn show_call(&self, call: &str, ended: &Ended) {
        let came = match &ended.outcome {
            Outcome::Complete(Reply::Call(result)) => output::text(result, Reader::Program),
            Outcome::Complete(Reply::Stream(stream)) => stream.text.clone(),
            Outcome::Complete(_) => String::new(),
            Outcome::InputRequired(pending) => format!("asks: {}", pending.input.prompt()),
            Outcome::Failed(error) => {
                let what = output::advised(&error.to_string(), &error.remedy());
                format!("error: {what}")
            }
        };
        let mut shown = format!("  > {call}\n");
        for line in came.lines() {
            shown.push_str(&format!("    {}\n", one_line(line)));
        }
        self.print(&shown);
    }

    fn title(&mut self, number: u8, step: &'static str) {
        self.step = step;
        let title = coloured(
            format_args!("{number}. {step}"),
            "36",
            io::stdout().is_terminal(),
        );
        self.print(&format!("\n{title}\n"));
    }

    fn check(&mut self, ok: bool, what: &'static str) -> Result<(), Failure> {
        let step = self.step;
        self.checks.push(Check { step, ok, what });
        if !ok {
            return Err(unexpected(what));
        }
        let ok = coloured("ok", "32", io::stdout().is_terminal());
        self.print(&format!("  {ok}: {what}\n"));
        Ok(())
    }

    fn print(&self, text: &str) {
        if !self.json {
            print(text);
        }
    }

    /// `{"ok":…,"steps":[{"step":…,"ok":…,"what":…}],"report":{…},"error":{…}}`
    fn document(&self, failure: Option<&Failure>) -> Vec<u8> {
        json::document(|object| {
            object.raw("ok", json::boolean(failure.is_none()));
            let steps: Vec<Vec<u8>> = self.checks.iter().map(Check::document).collect();
            json::objects(object, "steps", &steps);
            if let Some(report) = &self.report {
                object.raw("report", report.to_json().as_str());
            }
            if let Some(failure) = failure {
                json::failure(object, failure);
            }
        })
    }
}

impl Check {
    fn document(&self) -> Vec<u8> {
        json::document(|object| {
            object.string("step", self.step);
            object.raw("ok", json::boolean(self.ok));
            object.string("what", self.what);
        })
    }
}

fn tool(session: &dyn Session, tool: &str, arguments: Option<Json>) -> Ended {
    session::run(session, Operation::call(tool, arguments))
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

fn arguments(text: &str) -> Option<Json> {
    Json::parse(text).ok()
}

fn unexpected(what: &str) -> Failure {
    Failure::system(
        format!("the demo did not go as expected: {what}"),
        "Report this with everything above; it is a fault of this program.",
    )
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
