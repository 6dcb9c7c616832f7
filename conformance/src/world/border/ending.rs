//! How operations may end.

use mcp_proto::{Ended, ErrorKind, Outcome, Ran, Reply};

use super::super::asked;
use super::super::breach::{Broken, Rule};
use super::Border;

impl Border {
    pub(super) fn on_ended(&mut self, ended: &Ended) -> Result<(), Broken> {
        let operation = ended.operation;
        let Some(record) = self.operations.get_mut(&operation) else {
            return Err((Rule::EndsOnce, format!("{operation} was never accepted")));
        };
        if record.ended {
            return Err((Rule::EndsOnce, format!("{operation} ends a second time")));
        }
        record.ended = true;
        let mut opened = None;
        if let Some(stream) = &record.stream {
            stream.on_ended(&ended.outcome)?;
            opened = stream.is_own().then(|| stream.was_opened());
        }
        asked::judge_end(record, ended)?;
        let (stamp, is_call) = (record.stamp, record.is_call && !record.resumes);
        self.books.on_ended(ended)?;
        self.outputs.on_ended(ended)?;
        self.on_abandoned(stamp, ended);
        let mut others = self.operations.values();
        if !others.any(|other| other.stamp == stamp && !other.ended) {
            self.over.insert(stamp, "ended");
        }
        if !(self.stamps && is_call) {
            return Ok(());
        }
        let written = self.written.get(&stamp);
        let called = written.is_some_and(|methods| methods.iter().any(|sent| sent == "tools/call"));
        // A source of the application's is asked in place of the server.
        let called = opened.unwrap_or(called);
        // One that was refused may be sent again, and come to nothing before that.
        let refused = self.calls.get(&stamp).is_some_and(|(link, id)| {
            let link = self.links.get(link);
            link.is_some_and(|link| link.conversation.is_refused(*id))
        });
        let (rule, verdict) = match &ended.outcome {
            Outcome::Complete(Reply::Stream(result)) if result.attempts == 0 => {
                (Rule::Verdict, Ran::No)
            }
            Outcome::Complete(_) | Outcome::InputRequired(_) => (Rule::Unasked, Ran::Maybe),
            // The server itself says that it did not carry it out.
            Outcome::Failed(error) if error.kind() == ErrorKind::Rpc => return Ok(()),
            Outcome::Failed(error) => (Rule::Verdict, error.ran),
        };
        if called == (verdict == Ran::Maybe) || (refused && verdict == Ran::No) {
            return Ok(());
        }
        let outcome = super::super::transcript::outcome(&ended.outcome);
        let sent = if called { "was" } else { "was not" };
        Err((rule, format!("{operation} {sent} written and {outcome}")))
    }
}
