//! The client over the tokio driver.

use mcp_driver_tokio::{Client, Listener};
use mcp_proto::Diagnosis;
use mcp_proto::{
    Config, Costs, Ended, Error, Identity, MetricsSnapshot, Operation, OperationId, Outcome, Reply,
    Report, Request,
};
use tokio::runtime::{Builder, Handle, Runtime};

use super::{Pending, Progress, Session, Step};
use crate::exit::Failure;

/// Reading and keeping time is all that the runtime's own threads do.
const WORKER_THREADS: usize = 2;

pub(crate) struct Tokio {
    client: Client,
    runtime: Runtime,
}

impl Tokio {
    pub(crate) fn start(config: Config, identity: Identity) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::exhausted(format!("the runtime cannot be started: {error}"))
            })?;
        let client = {
            let _inside = runtime.enter();
            Client::builder(config).identity(identity).start()
        };
        Ok(Self { client, runtime })
    }
}

impl Session for Tokio {
    fn submit(&self, operation: Operation) -> Result<Box<dyn Pending>, Error> {
        let _inside = self.runtime.enter();
        let handle = self.runtime.handle().clone();
        if operation.request == Request::Listen {
            let peer = operation.peer.clone();
            let listener = Listener::from(self.client.submit(operation)?);
            return Ok(Box::new(Listening {
                id: listener.id(),
                listener: Some(listener),
                peer,
                handle,
            }));
        }
        let pending = self.client.submit(operation)?;
        Ok(Box::new(Waiting { pending, handle }))
    }

    fn cancel(&self, operation: OperationId) {
        let _inside = self.runtime.enter();
        self.client.cancel(operation);
    }

    fn finish(&self, operation: OperationId) {
        let _inside = self.runtime.enter();
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
        self.runtime.block_on(self.client.close());
    }
}

struct Waiting {
    pending: mcp_driver_tokio::Pending,
    handle: Handle,
}

impl Pending for Waiting {
    fn id(&self) -> OperationId {
        self.pending.id()
    }

    fn next(&mut self) -> Step {
        self.handle.block_on(async {
            match self.pending.progress().await {
                Some(update) => Step::Progress(Progress {
                    progress: update.progress,
                    total: update.total,
                    message: update.message,
                }),
                None => Step::Ended(Box::new((&mut self.pending).await)),
            }
        })
    }
}

struct Listening {
    id: OperationId,
    listener: Option<Listener>,
    peer: Option<String>,
    handle: Handle,
}

impl Pending for Listening {
    fn id(&self) -> OperationId {
        self.id
    }

    fn next(&mut self) -> Step {
        let next = match &mut self.listener {
            Some(listener) => self.handle.block_on(listener.next()),
            None => None,
        };
        if let Some(notification) = next {
            return Step::Notification(notification);
        }
        let outcome = match self.listener.take() {
            Some(listener) => match self.handle.block_on(listener.finish()) {
                Ok(notifications) => Outcome::Complete(Reply::Listened { notifications }),
                Err(error) => Outcome::Failed(error),
            },
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
