//! Facts for the negotiation's tests, in one word each.
#![allow(dead_code, unreachable_pub)]

use mcp_proto::error::{Cause, Error, RpcError};
use mcp_proto::negotiation::{Command, Event, HandshakeAnswer, Negotiation, Policy, ProbeAnswer};
use mcp_proto::negotiation::{Failure, Verdict};
use mcp_proto::version::Version;
use mcp_proto::violation::{Fault, Violation};
use mcp_proto::wire::Json;
use mcp_proto::{ErrorKind, Instant};

pub fn allowed() -> Policy {
    Policy {
        allow_legacy: true,
        declarable: vec!["elicitation".into()],
        ..Policy::default()
    }
}

pub fn answered(attempt: u32, answer: ProbeAnswer) -> Event {
    Event::ProbeAnswered { attempt, answer }
}

pub fn discovered(versions: &[&str]) -> ProbeAnswer {
    ProbeAnswer::Discovered {
        supported_versions: versions.iter().map(ToString::to_string).collect(),
    }
}

pub fn empty() -> ProbeAnswer {
    ProbeAnswer::Empty
}

pub fn malformed() -> ProbeAnswer {
    ProbeAnswer::Malformed(Fault::new(
        Violation::MalformedResult,
        "supportedVersions is missing",
    ))
}

pub fn rpc(code: i64, message: &str, data: Option<&str>) -> RpcError {
    RpcError {
        code,
        message: message.into(),
        data: data.map(|text| Json::parse(text).unwrap()),
    }
}

pub fn rpc_error(code: i64, message: &str) -> ProbeAnswer {
    ProbeAnswer::classify_error(rpc(code, message, None))
}

pub fn unsupported(versions: &[&str]) -> ProbeAnswer {
    let data = format!(r#"{{"supported":{versions:?},"requested":"2026-07-28"}}"#);
    ProbeAnswer::classify_error(rpc(-32022, "Unsupported protocol version", Some(&data)))
}

pub fn bad_unsupported() -> ProbeAnswer {
    ProbeAnswer::classify_error(rpc(-32022, "Unsupported protocol version", Some("{}")))
}

pub fn header_mismatch() -> ProbeAnswer {
    ProbeAnswer::classify_error(rpc(-32020, "Header mismatch", None))
}

pub fn missing(required: &str) -> ProbeAnswer {
    let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
    ProbeAnswer::classify_error(rpc(-32021, "Missing capability", Some(&data)))
}

pub fn rejected() -> ProbeAnswer {
    ProbeAnswer::Rejected("HTTP 400, text/plain: Unsupported protocol version".into())
}

pub fn accepted() -> Event {
    Event::HandshakeAnswered(HandshakeAnswer::Accepted {
        version: Version::V2025_11_25,
    })
}

pub fn handshake_modern(answer: ProbeAnswer) -> Event {
    let ProbeAnswer::Modern(error) = answer else {
        panic!("not a modern error");
    };
    Event::HandshakeAnswered(HandshakeAnswer::Modern(error))
}

pub fn refused() -> Event {
    Event::HandshakeAnswered(HandshakeAnswer::Refused(Cause::Rpc(rpc(
        -32601,
        "unknown method",
        None,
    ))))
}

pub fn foreign() -> Event {
    Event::ForeignError(rpc(-32000, "Server not initialized", None))
}

pub fn lost() -> Event {
    Event::LinkLost {
        description: "exit status 1; stderr: Error: API_KEY is required".into(),
        asks_for_handshake: false,
    }
}

pub fn lost_asking() -> Event {
    Event::LinkLost {
        description: "exit status 1; stderr: Error: expected a handshake".into(),
        asks_for_handshake: true,
    }
}

pub fn unreachable() -> Event {
    Event::Unreachable(Cause::SpawnRefused {
        command: "server".into(),
        reason: "no such file".into(),
    })
}

/// The pending commands, as one line each.
pub fn drain(negotiation: &mut Negotiation) -> Vec<String> {
    std::iter::from_fn(|| negotiation.poll_command())
        .map(|command| match command {
            Command::Fail(failure) => format!("Fail: {failure}"),
            Command::SendProbe { attempt, version } => format!("SendProbe {attempt} at {version}"),
            other => format!("{other:?}"),
        })
        .collect()
}

pub const MODERN: Verdict = Verdict::Modern {
    version: Version::V2026_07_28,
};
pub const LEGACY: Verdict = Verdict::Legacy {
    version: Version::V2025_11_25,
};

/// Drives a negotiation by hand; time moves only to deadlines.
pub struct Script {
    pub negotiation: Negotiation,
    pub now: Instant,
}

impl Script {
    /// Started, the link is up and the first probe is out.
    pub fn probing(policy: Policy) -> Self {
        let mut script = Self::new(policy);
        script.give(Event::Started, &[]);
        script.give(Event::LinkUp, &[probe(1)]);
        script
    }

    pub fn new(policy: Policy) -> Self {
        Self {
            negotiation: Negotiation::new(policy),
            now: Instant::ZERO,
        }
    }

    /// Reports `event` and expects exactly these commands.
    #[track_caller]
    pub fn give(&mut self, event: Event, expected: &[Command]) -> &mut Self {
        let commands = self.commands(event);
        assert_eq!(commands, expected);
        self
    }

    /// Lets the deadline pass and expects exactly these commands.
    #[track_caller]
    pub fn expire(&mut self, expected: &[Command]) -> &mut Self {
        self.now = self.negotiation.deadline().expect("something is awaited");
        self.give(Event::DeadlinePassed, expected)
    }

    /// Reports `event` and expects a failure alone.
    #[track_caller]
    pub fn fails(&mut self, event: Event) -> Failure {
        if event == Event::DeadlinePassed {
            self.now = self.negotiation.deadline().expect("something is awaited");
        }
        match self.commands(event).as_slice() {
            [Command::Fail(failure)] => failure.clone(),
            other => panic!("no failure: {other:?}"),
        }
    }

    pub fn commands(&mut self, event: Event) -> Vec<Command> {
        self.negotiation.handle(event, self.now);
        std::iter::from_fn(|| self.negotiation.poll_command()).collect()
    }
}

pub const fn probe(attempt: u32) -> Command {
    Command::SendProbe {
        attempt,
        version: Version::V2026_07_28,
    }
}

pub fn kind(failure: &Failure) -> ErrorKind {
    Error::general(failure.cause.clone()).kind()
}

/// Everything that proves nothing, by name.
pub fn ambiguous() -> Vec<(&'static str, Event)> {
    vec![
        ("timeout", Event::DeadlinePassed),
        ("close", lost_asking()),
        ("empty answer", answered(1, empty())),
        ("-32601", answered(1, rpc_error(-32601, "Method not found"))),
        (
            "code 0",
            answered(1, rpc_error(0, "invalid during session initialization")),
        ),
        (
            "-32602",
            answered(1, rpc_error(-32602, "Invalid request parameters")),
        ),
        (
            "-32000",
            answered(1, rpc_error(-32000, "session id is required")),
        ),
        ("HTTP 4xx with text", answered(1, rejected())),
        (
            "older revisions only",
            answered(1, discovered(&["2025-11-25"])),
        ),
    ]
}
