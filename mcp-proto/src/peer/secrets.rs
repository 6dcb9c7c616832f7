//! What a server says, without the secrets that it was given: it may repeat them anywhere.

use alloc::string::String;

use super::Peer;
use crate::error::{Cause, RpcError};
use crate::violation::Fault;
use crate::wire::Json;

impl Peer {
    /// The text with this peer's secrets struck out.
    pub(super) fn redact(&self, text: &str) -> String {
        self.config.redact(text)
    }

    /// The same for a fault, whose detail quotes the server.
    pub(super) fn redact_fault(&self, fault: &Fault) -> Fault {
        Fault::new(fault.violation, self.redact(&fault.detail))
    }

    /// The same for whatever in an error quotes the server. What the application itself said is left as
    /// it is.
    pub(super) fn redact_cause(&self, cause: Cause) -> Cause {
        match cause {
            Cause::SchemaViolation(fault) => Cause::SchemaViolation(self.redact_fault(&fault)),
            Cause::Degraded(fault) => Cause::Degraded(self.redact_fault(&fault)),
            Cause::Rpc(rpc) => Cause::Rpc(RpcError {
                code: rpc.code,
                message: self.redact(&rpc.message),
                data: rpc.data.and_then(|data| self.redact_json(data)),
            }),
            Cause::Closed { detail, stderr } => Cause::Closed {
                detail: self.redact(&detail),
                stderr: stderr.iter().map(|line| self.redact(line)).collect(),
            },
            Cause::Unavailable { reason } => Cause::Unavailable {
                reason: self.redact(&reason),
            },
            Cause::LegacyNotAllowed { evidence } => Cause::LegacyNotAllowed {
                evidence: self.redact(&evidence),
            },
            Cause::Version { offered } => Cause::Version {
                offered: offered.iter().map(|entry| self.redact(entry)).collect(),
            },
            Cause::SpawnRefused { command, reason } => Cause::SpawnRefused {
                command,
                reason: self.redact(&reason),
            },
            other => other,
        }
    }

    /// The same for JSON: all of it is left out where striking out would break it.
    fn redact_json(&self, data: Json) -> Option<Json> {
        let redacted = self.redact(data.as_str());
        if redacted == data.as_str() {
            return Some(data);
        }
        Json::parse(&redacted).ok()
    }
}
