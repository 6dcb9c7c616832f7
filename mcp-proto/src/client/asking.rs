//! What the application says when it is asked: for input (R30), and whether a request may be sent again (R34).

use super::{Client, Entry};
use crate::asking::Said;
use crate::error::{Cause, Error};
use crate::ids::{OperationId, Question};
use crate::peer::Peer;
use crate::time::Instant;
use crate::types::InputResponses;

impl Client {
    /// Answers what the server asks about an [`interactive`](crate::Options::interactive) operation
    /// ([`News::InputNeeded`](crate::News::InputNeeded)), which goes on with that.
    ///
    /// # Errors
    /// [`Cause::Usage`]: that is not asked (any longer), or the answers do not fit the questions. The question
    /// stays open then.
    pub fn answer(
        &mut self,
        operation: OperationId,
        question: Question,
        responses: &InputResponses,
        now: Instant,
    ) -> Result<(), Error> {
        let now = self.clamp(now);
        let peer = match self.entries.get(&operation) {
            Some(Entry::Direct(peer)) => self.peers.get_mut(peer.index()),
            _ => None,
        };
        let answered = match peer {
            Some(peer) => peer.answer(operation, question, responses, now),
            None => Err(Error::general(Cause::Usage(
                "nothing is asked about this operation".into(),
            ))),
        };
        self.drain();
        answered
    }

    /// Says what came of such a question that was put before somebody else: a person, a model. The question ends
    /// with that, whatever came.
    ///
    /// Without responses the operation ends with [`Outcome::InputRequired`](crate::Outcome::InputRequired); one
    /// whose server asks in the middle of a request, as older revisions do, goes on instead, and the server is
    /// told that nobody answers. With responses that do not fit the operation fails with [`Cause::Usage`]. What
    /// comes too late for its question changes nothing.
    pub fn reply(
        &mut self,
        operation: OperationId,
        question: Question,
        responses: Option<&InputResponses>,
        now: Instant,
    ) {
        self.with_operation(operation, now, |peer, now| {
            peer.reply(operation, question, responses, now);
        });
    }

    /// The same for whatever handlers said.
    pub fn said(&mut self, operation: OperationId, said: &Said, now: Instant) {
        match said {
            Said::Input(question, responses) => {
                self.reply(operation, *question, responses.as_ref(), now);
            }
            Said::Retry(question, retry) => self.decide(operation, *question, *retry, now),
        }
    }

    /// Decides whether a request may be sent again ([`News::RetryQuestion`](crate::News::RetryQuestion)).
    /// An answer to a question that is not open (any longer) changes nothing.
    pub fn decide(
        &mut self,
        operation: OperationId,
        question: Question,
        retry: bool,
        now: Instant,
    ) {
        self.with_operation(operation, now, |peer, now| {
            peer.decide(operation, question, retry, now);
        });
    }

    /// Does something about an operation that a peer has.
    pub(super) fn with_operation(
        &mut self,
        operation: OperationId,
        now: Instant,
        act: impl FnOnce(&mut Peer, Instant),
    ) {
        let now = self.clamp(now);
        if let Some(Entry::Direct(peer)) = self.entries.get(&operation) {
            let peer = *peer;
            self.with_peer(peer, |peer| act(peer, now));
            self.after_news();
        }
    }
}
