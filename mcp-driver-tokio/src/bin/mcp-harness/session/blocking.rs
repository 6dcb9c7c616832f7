//! The client over the blocking driver.

use std::time::Duration;

use mcp_driver_blocking::{Client, Listener};
use mcp_proto::Diagnosis;
use mcp_proto::error::Cause;
use mcp_proto::{
    Config, Costs, Ended, Error, Identity, MetricsSnapshot, Operation, OperationId, Outcome, Reply,
    Report, Request,
};

use super::{Pending, Progress, Session, Step, refused};
use crate::exit::Failure;

pub(crate) struct Blocking {
    client: Client,
}

impl Blocking {
    pub(crate) fn start(config: Config, identity: Identity) -> Result<Self, Failure> {
        let client = Client::builder(config).identity(identity).start()?;
        Ok(Self { client })
    }
}

impl Session for Blocking {
    fn submit(&self, operation: Operation) -> Result<Box<dyn Pending>, Error> {
        if operation.request == Request::Listen {
            let peer = operation.peer.clone();
            let listener = Listener::from(self.client.submit(operation)?);
            return Ok(Box::new(Listening {
                id: listener.id(),
                listener: Some(listener),
                peer,
            }));
        }
        Ok(Box::new(Waiting(self.client.submit(operation)?)))
    }

    fn cancel(&self, operation: OperationId) {
        self.client.cancel(operation);
    }

    fn finish(&self, operation: OperationId) {
        self.client.finish(operation);
    }

    fn report(&self) -> Report {
        self.client.report()
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        self.client.diagnoses()
    }

    fn metrics(&self) -> MetricsSnapshot {
        self.client.metrics()
    }

    fn costs(&self) -> Costs {
        self.client.costs()
    }

    fn close(&self) {
        self.client.close();
    }
}

struct Waiting(mcp_driver_blocking::Pending);

impl Pending for Waiting {
    fn id(&self) -> OperationId {
        self.0.id()
    }

    fn next(&mut self) -> Step {
        if let Some(update) = self.0.progress() {
            return Step::Progress(Progress {
                progress: update.progress,
                total: update.total,
                message: update.message,
            });
        }
        // It is over: nothing is waited for.
        let ended = self.0.wait_timeout(Duration::ZERO);
        Step::Ended(Box::new(ended.unwrap_or_else(|| {
            refused(Error::general(Cause::Usage(
                "this operation has ended before".into(),
            )))
        })))
    }
}

struct Listening {
    id: OperationId,
    listener: Option<Listener>,
    peer: Option<String>,
}

impl Pending for Listening {
    fn id(&self) -> OperationId {
        self.id
    }

    fn next(&mut self) -> Step {
        if let Some(notification) = self.listener.as_mut().and_then(Listener::next) {
            return Step::Notification(notification);
        }
        let outcome = match self.listener.take().map(Listener::finish) {
            Some(Ok(notifications)) => Outcome::Complete(Reply::Listened { notifications }),
            Some(Err(error)) => Outcome::Failed(error),
            None => Outcome::Complete(Reply::Listened { notifications: 0 }),
        };
        Step::Ended(Box::new(Ended {
            operation: self.id,
            peer: self.peer.clone(),
            tool: None,
            outcome,
        }))
    }
}
