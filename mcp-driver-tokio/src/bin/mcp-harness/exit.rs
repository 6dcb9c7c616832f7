//! How the process ends.

use std::process::ExitCode;

use mcp_proto::Error;
use mcp_proto::error::Cause;

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

/// Why a command could not be carried out, for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What is wrong, one line each.
    pub(crate) messages: Vec<String>,
    /// What to do about it.
    pub(crate) remedy: String,
    /// How the process ends.
    pub(crate) exit: Exit,
}

impl Failure {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            messages: vec![message.into()],
            remedy: remedy.into(),
            exit: Exit::Usage,
        }
    }

    /// The machine does not give what is needed.
    pub(crate) fn system(message: impl Into<String>) -> Self {
        Self {
            messages: vec![message.into()],
            remedy: "Free some threads or descriptors, and try again.".into(),
            exit: Exit::CallFailed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            messages: vec![error.to_string()],
            remedy: error.remedy(),
            exit: (&error).into(),
        }
    }
}
