//! The client, whatever driver moves its bytes.

mod blocking;
mod tokio;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::Diagnosis;
use mcp_proto::config::PeerConfig;
use mcp_proto::continuation::Continuation;
use mcp_proto::error::Cause;
use mcp_proto::{
    Config, Costs, Ended, Error, Identity, MetricsSnapshot, Notification, Operation, OperationId,
    Outcome, PendingInput, Report, Request,
};

use crate::args::Driver;
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// A client whose servers are being connected. All methods can be called from any thread.
pub(crate) trait Session: Send + Sync {
    /// Starts an operation.
    fn submit(&self, operation: Operation) -> Result<Box<dyn Pending>, Error>;
    /// Cancels an operation, unless it has ended.
    fn cancel(&self, operation: OperationId);
    /// Ends a listening operation with its count.
    fn finish(&self, operation: OperationId);
    /// What became of the servers.
    fn report(&self) -> Report;
    /// Per server: what was run and what came back.
    fn diagnoses(&self) -> Vec<Diagnosis>;
    /// What was counted and measured.
    fn metrics(&self) -> MetricsSnapshot;
    /// What calls cost so far.
    fn costs(&self) -> Costs;
    /// Ends everything in bounded time and returns when no server is left.
    fn close(&self);
}

/// An operation under way. Dropping it cancels it.
pub(crate) trait Pending: Send {
    /// Its number.
    fn id(&self) -> OperationId;
    /// Waits for what comes next. Not to be called after the end.
    fn next(&mut self) -> Step;
}

/// What happens to an operation.
pub(crate) enum Step {
    /// The server reported progress.
    Progress(Progress),
    /// Something changed on a server.
    Notification(Notification),
    /// It ended.
    Ended(Box<Ended>),
}

/// How far an operation is.
pub(crate) struct Progress {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

/// Starts a client. On a signal it is closed, and after one it is not started.
pub(crate) fn open(
    config: Config,
    driver: Driver,
    interrupt: &Interrupt,
) -> Result<Arc<dyn Session>, Failure> {
    if interrupt.is_hit() {
        return Err(Failure::from(Error::general(Cause::Cancelled)).interrupted());
    }
    let session: Arc<dyn Session> = match driver {
        Driver::Tokio => Arc::new(tokio::Tokio::start(config, identity()?)?),
        Driver::Blocking => Arc::new(blocking::Blocking::start(config, identity()?)?),
    };
    let other = Arc::clone(&session);
    interrupt.on_hit(move || other.close());
    Ok(session)
}

/// Says what a person should know of costs and the ledger.
pub(crate) fn note_costs(session: &dyn Session) {
    for note in session.costs().notes() {
        crate::output::note("costs", note);
    }
}

/// Runs an operation to its end; one that was not accepted has ended as well.
pub(crate) fn run(session: &dyn Session, operation: Operation) -> Ended {
    run_with(session, operation, |_| {})
}

/// The same, with a look at its progress.
pub(crate) fn run_with(
    session: &dyn Session,
    operation: Operation,
    on_progress: impl FnMut(Progress),
) -> Ended {
    wait(session.submit(operation), on_progress)
}

/// Waits for the end of an operation that was submitted.
pub(crate) fn wait(
    submitted: Result<Box<dyn Pending>, Error>,
    mut on_progress: impl FnMut(Progress),
) -> Ended {
    let mut pending = match submitted {
        Ok(pending) => pending,
        Err(error) => return refused(error),
    };
    loop {
        match pending.next() {
            Step::Progress(progress) => on_progress(progress),
            Step::Notification(_) => {}
            Step::Ended(ended) => return *ended,
        }
    }
}

/// The configured deadlines of operations, by peer.
#[derive(Default)]
pub(crate) struct Deadlines(BTreeMap<String, [Duration; 2]>);

impl Deadlines {
    pub(crate) fn of(config: &Config) -> Self {
        let deadlines = |peer: &PeerConfig| [peer.timeout, peer.absolute_timeout];
        let peers = config.peers.iter();
        Self(
            peers
                .map(|peer| (peer.name.clone(), deadlines(peer)))
                .collect(),
        )
    }

    /// Whether a deadline was brought by an operation with this timeout. One with several parts brings
    /// what is left of it to the later ones.
    fn is_own(&self, peer: Option<&str>, limit: Duration, timeout: Duration) -> bool {
        let configured = peer.and_then(|peer| self.0.get(peer));
        limit == timeout
            || (limit < timeout && configured.is_some_and(|of_peer| !of_peer.contains(&limit)))
    }
}

/// What to do about a deadline that the operation itself brought, and not the configuration.
pub(crate) fn advise(
    ended: &mut Ended,
    timeout: Option<Duration>,
    configured: &Deadlines,
    option: &str,
) {
    let (Outcome::Failed(error), Some(timeout)) = (&mut ended.outcome, timeout) else {
        return;
    };
    let Cause::Timeout { setting, limit, .. } = &error.cause else {
        return;
    };
    let of_operation = matches!(*setting, "timeoutMs" | "absoluteTimeoutMs");
    if of_operation && configured.is_own(error.peer.as_deref(), *limit, timeout) {
        let advice = format!("give the operation more time with {option}");
        *error = error.clone().advise(&advice);
    }
}

/// Waits until every server is ready or has failed.
pub(crate) fn settle(session: &dyn Session) -> Result<(), Error> {
    match run(session, Operation::new(Request::Settle)).outcome {
        Outcome::Failed(error) => Err(error),
        _ => Ok(()),
    }
}

/// The end of an operation that was not accepted.
pub(crate) fn refused(error: Error) -> Ended {
    Ended {
        operation: OperationId::new(0),
        peer: error.peer.clone(),
        tool: None,
        outcome: Outcome::Failed(error),
    }
}

/// The end of an operation that was kept: its question.
pub(crate) fn asked(continuation: Continuation) -> Ended {
    Ended {
        operation: OperationId::new(0),
        peer: Some(continuation.request().pin().peer.clone()),
        tool: None,
        outcome: Outcome::InputRequired(PendingInput {
            input: continuation.input().clone(),
            continuation,
        }),
    }
}

/// What servers are told about this program: it shows what they ask for, and passes the answer on.
fn identity() -> Result<Identity, Failure> {
    let info = serde_json::json!({"name": "mcp-harness", "version": env!("CARGO_PKG_VERSION")});
    let capabilities = serde_json::json!({
        "elicitation": {"form": {}, "url": {}},
        "roots": {},
        "sampling": {},
    });
    Identity::new(info.into(), capabilities.into()).map_err(|error| {
        Failure::system(
            error.to_string(),
            "Report this; it is a fault of this program.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_told_of_its_own_deadline_only() {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let mut peer = PeerConfig::stdio("a", "x", [""; 0]);
        peer.timeout = Duration::from_secs(3);
        peer.absolute_timeout = Duration::from_secs(5);
        let configured = Deadlines::of(&Config::new(vec![peer]));
        let advice = |setting, limit| {
            let cause = Cause::Timeout {
                awaited: String::new(),
                setting,
                limit: Duration::from_secs(limit),
            };
            let mut ended = refused(Error::new("a", cause));
            advise(&mut ended, Some(TIMEOUT), &configured, "it");
            matches!(ended.outcome, Outcome::Failed(error) if error.advice.is_some())
        };
        assert!(advice("timeoutMs", 10));
        assert!(
            advice("absoluteTimeoutMs", 9),
            "what its first part has left"
        );
        assert!(!advice("timeoutMs", 3));
        assert!(!advice("absoluteTimeoutMs", 5));
        assert!(!advice("probeTimeoutMs", 10));
    }
}
