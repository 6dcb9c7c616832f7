//! Facts for the negotiation's tests, in one word each.
#![allow(dead_code, unreachable_pub)]

use mcp_proto::error::{Cause, RpcError};
use mcp_proto::negotiation::{Command, Event, HandshakeAnswer, Negotiation, Policy, ProbeAnswer};
use mcp_proto::version::Version;
use mcp_proto::violation::{Fault, Violation};
use mcp_proto::wire::Json;

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
