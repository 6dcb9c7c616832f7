//! Operations for which the application is asked for input (R30): questions and answers.

use mcp_proto::continuation::DropReason;
use mcp_proto::error::Cause;
use mcp_proto::types::{InputRequired, InputResponses};
use mcp_proto::{Ended, Error, ErrorKind, OperationId, Outcome, Question, Reply};

use super::border::{Border, OperationRecord};
use super::breach::{Broken, Rule};

impl Border {
    /// The application is asked for input.
    pub(super) fn on_asked(
        &mut self,
        operation: OperationId,
        question: Question,
        input: &InputRequired,
    ) -> Result<(), Broken> {
        let wrong = |how: &str| Err((Rule::Asked, format!("{operation} {how}")));
        let Some(record) = self.operations.get_mut(&operation) else {
            return wrong("was never accepted");
        };
        if record.ended || !record.interactive {
            return wrong("has ended, or is not interactive");
        }
        if record.asked.is_some() {
            return wrong("is asked about already");
        }
        if self.stamps && !self.written.contains_key(&record.stamp) {
            return wrong("was not sent yet");
        }
        record.asked = Some((question, input.clone()));
        Ok(())
    }

    /// A server does not wait for the answer any more.
    pub(super) fn on_withdrawn(
        &mut self,
        operation: OperationId,
        question: Question,
    ) -> Result<(), Broken> {
        let record = self.operations.get_mut(&operation);
        let open = record.and_then(|record| record.asked.take());
        if open.is_some_and(|(open, _)| open == question) {
            return Ok(());
        }
        let detail = format!("{operation}: {question} is withdrawn, and not open");
        Err((Rule::Asked, detail))
    }

    /// Somebody said what came of a question: it is not open any more, if it was that one.
    pub(super) fn on_replied(
        &mut self,
        operation: OperationId,
        question: Question,
        responses: Option<&InputResponses>,
    ) {
        if self.question(operation) != Some(question) {
            return;
        }
        if let Some(record) = self.operations.get_mut(&operation) {
            self.consent.on_wanted(record.stamp);
            record.finished |= responses.is_none();
            record.asked = None;
        }
    }

    /// The application has answered, and was told whether that counts.
    pub(super) fn on_answered(
        &mut self,
        operation: OperationId,
        responses: &InputResponses,
        answered: &Result<(), Error>,
    ) -> Result<(), Broken> {
        let record = self.operations.get_mut(&operation);
        if let Some(record) = &record {
            self.consent.on_wanted(record.stamp);
        }
        let asked = record.and_then(|record| record.asked.take());
        let wrong = |how: &str| Err((Rule::Asked, format!("{operation}: {how}")));
        match (answered, &asked) {
            (Ok(()), None) => wrong("nothing was asked, and the answer was taken"),
            (Ok(()), Some((_, input))) => {
                let unanswered = input.requests.iter();
                match unanswered
                    .into_iter()
                    .find(|asked| responses.get(&asked.key).is_none())
                {
                    Some(missing) => wrong(&format!("{} was not answered", missing.key)),
                    None => Ok(()),
                }
            }
            (Err(error), _) if error.kind() != ErrorKind::Usage => {
                wrong(&format!("refused as {error}"))
            }
            (Err(error), Some((_, input))) if fits(input, responses) => {
                wrong(&format!("a good answer was refused: {error}"))
            }
            (Err(_), _) => {
                // The question stays open.
                if let Some(record) = self.operations.get_mut(&operation) {
                    record.asked = asked;
                }
                Ok(())
            }
        }
    }

    /// The application will not answer.
    pub(super) fn on_finish(&mut self, operation: OperationId) {
        if let Some(record) = self.operations.get_mut(&operation) {
            record.finished |= record.asked.take().is_some();
        }
    }

    /// What is being asked about an operation, by its number.
    pub(super) fn question(&self, operation: OperationId) -> Option<Question> {
        let record = self.operations.get(&operation)?;
        Some(record.asked.as_ref()?.0)
    }

    /// The operations for which the application is being asked.
    pub(super) fn asked(&self) -> impl DoubleEndedIterator<Item = (OperationId, &InputRequired)> {
        let open = self.operations.iter().filter(|(_, record)| !record.ended);
        open.filter_map(|(operation, record)| Some((*operation, &record.asked.as_ref()?.1)))
    }
}

/// The end of an operation has to do with what it was asked.
pub(super) fn judge_end(record: &OperationRecord, ended: &Ended) -> Result<(), Broken> {
    let operation = ended.operation;
    match &ended.outcome {
        Outcome::InputRequired(_) if record.interactive && !record.finished => {
            let detail = format!("{operation} is interactive, and ends with a question");
            Err((Rule::Asked, detail))
        }
        Outcome::Failed(error) if is_own_deadline(&error.cause) && record.asked.is_some() => {
            let detail = format!("{operation} timed out while the application was asked");
            Err((Rule::Asked, detail))
        }
        // What there is of its text is the result.
        Outcome::Complete(Reply::Stream(stream)) if stream.cancelled => Ok(()),
        Outcome::Complete(_) if record.asked.is_some() => {
            let detail = format!("{operation} completed while the application was asked");
            Err((Rule::Asked, detail))
        }
        _ => Ok(()),
    }
}

/// Whether a deadline of the operation has passed, and not one of a peer that is being found out about.
fn is_own_deadline(cause: &Cause) -> bool {
    let askers = ["tools/call", "prompts/get", "resources/read"];
    match cause {
        Cause::Timeout { awaited, .. } => askers.iter().any(|asker| awaited.ends_with(asker)),
        Cause::StreamDropped(dropped) => dropped.stream.reason == DropReason::Deadline,
        _ => false,
    }
}

/// Whether nobody can doubt that these answer that.
fn fits(input: &InputRequired, responses: &InputResponses) -> bool {
    let declined = |key: &str| {
        let response = responses
            .get(key)
            .map(|response| response.as_json().as_str());
        response == Some(r#"{"action":"decline"}"#)
    };
    let is_form = |method| method == mcp_proto::types::InputMethod::Elicitation;
    responses.keys().count() == input.requests.len()
        && input
            .requests
            .iter()
            .all(|asked| is_form(asked.method) && declined(&asked.key))
}
