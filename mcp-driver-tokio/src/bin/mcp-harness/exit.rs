//! How the process ends.

use std::process::ExitCode;

use mcp_proto::error::Cause;
use mcp_proto::{Error, ErrorKind};

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All is well.
    Good = 0,
    /// The call failed, or the tool says so.
    CallFailed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// Some server failed.
    PeerFailed = 3,
    /// The server needs input that was not given.
    InputNeeded = 4,
    /// A signal ended it.
    Interrupted = 130,
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error.cause {
            Cause::Config(_) | Cause::Usage(_) => Self::Usage,
            _ => Self::CallFailed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The kind in one word.
    pub(crate) kind: ErrorKind,
    /// What is wrong, in one line.
    pub(crate) message: String,
    /// What to do about it, in one sentence.
    pub(crate) remedy: String,
    /// What else there is to see, a line each.
    pub(crate) details: Vec<String>,
    /// All that is known, where it is an error of the client.
    pub(crate) error: Option<Box<Error>>,
    /// Whom and what it was about, as members of the document; for operations on servers.
    pub(crate) about: Vec<(&'static str, String)>,
    /// How the process ends.
    pub(crate) exit: Exit,
}

impl Failure {
    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Usage,
            message: message.into(),
            remedy: remedy.into(),
            details: Vec::new(),
            error: None,
            about: Vec::new(),
            exit: Exit::Usage,
        }
    }

    /// The configuration is wrong.
    pub(crate) fn config(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Config,
            ..Self::usage(message, remedy)
        }
    }

    /// The machine does not give what is needed, or this program is wrong.
    pub(crate) fn system(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            exit: Exit::CallFailed,
            ..Self::usage(message, remedy)
        }
    }

    /// The same after a signal, which is why it failed, however that showed. Who sent it need only be told
    /// what may have happened all the same.
    pub(crate) fn interrupted(self) -> Self {
        let remedy = if self.may_have_executed() {
            "Find out whether it was carried out before you repeat it."
        } else if self.about.is_empty() {
            "Run it again."
        } else {
            "Run it again: it was not carried out."
        };
        let error = self.error.map(|mut error| {
            error.cause = Cause::Cancelled;
            error
        });
        Self {
            kind: ErrorKind::Cancelled,
            error,
            about: self.about,
            exit: Exit::Interrupted,
            ..Self::usage("interrupted by a signal", remedy)
        }
    }

    /// Whether it was about a tool: reading something carries nothing out.
    pub(crate) fn is_call(&self) -> bool {
        self.about.iter().any(|(member, _)| *member == "tool")
    }

    /// Whether a server may have carried out what was asked of it.
    pub(crate) fn may_have_executed(&self) -> bool {
        let error = self.error.as_deref();
        !self.about.is_empty() && error.is_some_and(Error::may_have_executed)
    }

    /// The machine has no more threads or descriptors.
    pub(crate) fn exhausted(message: impl Into<String>) -> Self {
        Self::system(message, "Free some threads or descriptors, and try again.")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // A single line stands in the message already.
        let quoted = error.stderr();
        Self {
            kind: error.kind(),
            message: error.to_string(),
            remedy: error.remedy(),
            details: if quoted.len() > 1 {
                quoted.to_vec()
            } else {
                Vec::new()
            },
            exit: (&error).into(),
            error: Some(Box::new(error)),
            about: Vec::new(),
        }
    }
}
