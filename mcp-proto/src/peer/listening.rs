//! Open subscriptions (R91).

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::Peer;
use super::active::{Active, Listening, Stage};
use super::requests::Owner;
use super::sending::Extra;
use crate::identity::Params;
use crate::ids::{LinkId, OperationId};
use crate::operation::{Notification, Outcome, Reply, Request};
use crate::time::Instant;
use crate::types;

impl Peer {
    /// Ends a [`Request::Listen`] with its count, and an operation for which the application is asked for
    /// input with what is asked. Other operations are ignored.
    pub fn finish(&mut self, operation: OperationId, now: Instant) {
        self.reach(now);
        self.finish_listening(operation);
        self.finish_asking(operation, now);
        self.pump(now);
        self.flush();
    }

    /// The change notifications that wait for a listening operation, oldest first; after its end, those
    /// that came before it.
    pub fn take_notifications(&mut self, operation: OperationId) -> Vec<Notification> {
        match self
            .operations
            .get_mut(&operation)
            .map(|active| &mut active.stage)
        {
            Some(Stage::Listening(listening)) => listening.take(),
            _ => self.unread.take(operation),
        }
    }

    /// What was not taken when a listening operation ended.
    pub(crate) fn take_unread(&mut self, operation: OperationId) -> Vec<Notification> {
        self.unread.take(operation)
    }

    /// Whether the link may be read. `false` while more notifications wait for the application than the
    /// limit allows; ask again after [`Peer::take_notifications`].
    #[must_use]
    pub fn wants_read(&self, link: LinkId) -> bool {
        self.link.as_ref().is_none_or(|current| current.id != link) || !self.is_flooded()
    }

    fn is_flooded(&self) -> bool {
        self.operations.values().any(|active| match &active.stage {
            Stage::Listening(listening) => {
                let limits = &self.config.limits;
                listening.queue.len() >= limits.notifications
                    || listening.queued_bytes >= limits.line_bytes
            }
            _ => false,
        })
    }

    pub(super) fn start_listening(&mut self, operation: OperationId, mut active: Box<Active>) {
        let asks = self
            .session
            .as_ref()
            .is_some_and(|session| session.dialect.listen);
        // Opened again after the link was lost, it goes on where it was.
        let mut listening = match core::mem::replace(&mut active.stage, Stage::Queued) {
            Stage::Listening(listening) => listening,
            _ => Listening::default(),
        };
        if asks {
            let params = Params::build(|object| {
                let mut filter = object.object("notifications");
                for name in [
                    "promptsListChanged",
                    "resourcesListChanged",
                    "toolsListChanged",
                ] {
                    filter.raw(name, "true");
                }
                filter.end();
            });
            let owner = Owner::Operation(operation);
            let extra = Extra {
                progress_token: None,
                caller_meta: active.meta.as_ref(),
                context: Some(&active.context),
            };
            let request = self.send_control(owner, "subscriptions/listen", Some(&params), extra);
            listening.request = Some(request);
            active.handed_over.get_or_insert(self.now);
        } else {
            listening.acknowledged = true;
            active.clock = active.clock.and_then(|clock| clock.silent(&active.options));
        }
        active.stage = Stage::Listening(listening);
        self.operations.insert(operation, active);
    }

    /// The server acknowledged a subscription: from now on it may stay silent for ever.
    pub(super) fn on_acknowledged(&mut self, params: Option<&RawValue>) -> bool {
        match self.subscription_of(params) {
            Some(active) => {
                active.clock = active.clock.and_then(|clock| clock.silent(&active.options));
                if let Stage::Listening(listening) = &mut active.stage {
                    listening.acknowledged = true;
                }
                true
            }
            None => false,
        }
    }

    fn subscription_of(&mut self, params: Option<&RawValue>) -> Option<&mut Active> {
        let id = types::subscription_id(params?)?;
        self.operations
            .values_mut()
            .map(Box::as_mut)
            .find(|active| active.listens_with(id))
    }

    /// A server tears a subscription down with `notifications/cancelled`.
    pub(super) fn on_subscription_ended(&mut self, params: Option<&RawValue>) -> bool {
        let id = params.and_then(types::cancelled_request);
        let Some(id) = id.and_then(|id| id.as_u64()) else {
            return false;
        };
        let listener = self
            .operations
            .iter()
            .find(|(_, active)| active.listens_with(id));
        let Some(operation) = listener.map(|(operation, _)| *operation) else {
            return false;
        };
        self.complete_listening(operation);
        true
    }

    /// The application has heard enough.
    pub(super) fn finish_listening(&mut self, operation: OperationId) {
        let Some(active) = self.operations.get(&operation) else {
            return;
        };
        if active.request == Request::Listen {
            if let Some(request) = active.request_id() {
                self.withdraw(request, "no longer needed");
            }
            self.queue.retain(|queued| *queued != operation);
            self.complete_listening(operation);
        }
    }

    pub(super) fn complete_listening(&mut self, operation: OperationId) {
        if let Some(active) = self.operations.remove(&operation) {
            if let Some(request) = active.request_id() {
                self.requests.take(request);
            }
            let notifications = match &active.stage {
                Stage::Listening(listening) => listening.count,
                _ => 0,
            };
            self.end(
                operation,
                active,
                Outcome::Complete(Reply::Listened { notifications }),
            );
        }
    }
}
