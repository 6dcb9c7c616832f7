//! Open subscriptions (R91).

use alloc::boxed::Box;

use serde_json::value::RawValue;

use super::Peer;
use super::active::{Active, Listening, Stage};
use super::requests::Owner;
use super::sending::Extra;
use crate::identity::Params;
use crate::ids::OperationId;
use crate::operation::{Outcome, Reply, Request};
use crate::types;

impl Peer {
    pub(super) fn start_listening(&mut self, operation: OperationId, mut active: Box<Active>) {
        let asks = self
            .session
            .as_ref()
            .is_some_and(|session| session.dialect.listen);
        let mut listening = Listening::default();
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
            };
            let request = self.send_control(owner, "subscriptions/listen", Some(&params), extra);
            listening.request = Some(request);
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
        let Some(id) = params.and_then(types::cancelled_request) else {
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
