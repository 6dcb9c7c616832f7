//! What is written of calls: not after their ends, not twice without permission, and what goes with them.

use mcp_proto::Question;
use mcp_proto::{LinkId, News, Operation, OperationId, Request};

use super::super::breach::{Broken, Rule};
use super::super::conversation::Written;
use super::{Border, OperationRecord};

impl Border {
    /// Whether any peer that may be meant allows a call to run twice (R34).
    pub(super) fn may_run_twice(&self, operation: &Operation) -> bool {
        let Request::CallTool(call) = &operation.request else {
            return true;
        };
        let name = call.tool.rsplit('/').next().unwrap_or_default();
        let options = &operation.options;
        // A streamed call always has a key, derived or given.
        let keyed = options.idempotency_key.is_some() || options.stream.is_some();
        let mut peers = self.idempotent.iter();
        peers.any(|(tools, keys_travel)| tools.contains(name) || keyed && *keys_travel)
    }

    /// A stamped request is written.
    pub(super) fn on_written(&mut self, link: LinkId, written: &Written) -> Result<(), Broken> {
        let Written { stamp, method, .. } = written;
        if let Some(how) = self.over.get(stamp) {
            return Err((
                Rule::AfterEnd,
                format!("{method} of an operation that {how}"),
            ));
        }
        let mut same = self.operations.iter();
        let last = same.rfind(|(_, record)| record.stamp == *stamp);
        if let Some((operation, record)) = last {
            if record.asked.is_some() && !record.resumes {
                let detail = format!("{method} before the application has answered");
                return Err((Rule::Asked, detail));
            }
            if record.question.is_some() {
                let detail = format!("{operation}, before the application has decided");
                return Err((Rule::Repeated, detail));
            }
        }
        let Some(tool) = &written.tool else {
            return Ok(());
        };
        let last = last.map(|(operation, record)| (*operation, is_own(record)));
        if let Some((operation, own)) = last {
            if own {
                let detail = format!("{operation} is sent, and its stream is the application's");
                return Err((Rule::Stream, detail));
            }
            self.books.on_called(operation, link.peer.index(), tool)?;
        }
        self.consent.on_called(*stamp, link, tool);
        self.check_key(link, written)?;
        let earlier = self.calls.insert(*stamp, (link, written.id));
        self.check_repeated(*stamp, earlier)
    }

    /// A call is written again only if it may run twice, or the server has answered it.
    fn check_repeated(&mut self, stamp: u64, earlier: Option<(LinkId, u64)>) -> Result<(), Broken> {
        let Some((link, id)) = earlier else {
            return Ok(());
        };
        let answered = self.links.get(&link);
        let answered = answered.is_some_and(|link| link.conversation.is_answered(id));
        let mut records = self.operations.values_mut();
        let record = records.find(|record| record.stamp == stamp);
        let Some(record) = record.filter(|record| !answered && !record.repeatable) else {
            return Ok(());
        };
        if record.permits > 0 {
            record.permits -= 1;
            return Ok(());
        }
        let detail = format!("request {id} on {link} may have been executed, and is sent again");
        Err((Rule::Repeated, detail))
    }

    /// The key is the application's, or the same in all requests of the call.
    fn check_key(&mut self, link: LinkId, written: &Written) -> Result<(), Broken> {
        let Written { stamp, key, .. } = written;
        let mut records = self.operations.values();
        let record = records.find(|record| record.stamp == *stamp);
        let given = record.and_then(|record| record.key.clone());
        let travels = self.idempotent.get(link.peer.index());
        let travels = travels.is_some_and(|(_, travels)| *travels);
        let first = self.keys.entry(*stamp).or_insert_with(|| key.clone());
        let right = match given.filter(|_| travels) {
            Some(given) => *key == Some(given),
            None => key == first,
        };
        if right && (travels || key.is_none()) {
            return Ok(());
        }
        Err((
            Rule::Key,
            format!("{key:?} after {first:?} in the call {stamp}"),
        ))
    }

    /// The stream of an operation that has not ended.
    pub(in super::super) fn stream_of(
        &mut self,
        operation: OperationId,
    ) -> Option<&mut super::StreamRecord> {
        let record = self.operations.get_mut(&operation)?;
        record.stream.as_mut().filter(|_| !record.ended)
    }

    /// The application decides about a retry.
    pub(in super::super) fn on_decided(
        &mut self,
        operation: OperationId,
        question: Question,
        retry: bool,
    ) {
        if let Some(record) = self.operations.get_mut(&operation)
            && record.question == Some(question)
        {
            record.question = None;
            record.permits += u32::from(retry);
            self.consent.on_wanted(record.stamp);
        }
    }

    /// Something is said of a streamed call. Between two rounds of questions its text stays as it is.
    pub(super) fn on_stream_news(
        &mut self,
        operation: OperationId,
        news: &News,
    ) -> Result<(), Broken> {
        let Some(record) = self
            .operations
            .get_mut(&operation)
            .filter(|record| !record.ended)
        else {
            return Err((Rule::News, format!("{operation} has ended, and {news:?}")));
        };
        let between = record.asked.is_some() && {
            let call = self.calls.get(&record.stamp);
            call.is_some_and(|(link, id)| {
                let link = self.links.get(link);
                link.is_some_and(|link| link.conversation.is_answered(*id))
            })
        };
        if between {
            let detail = format!("{operation} is asked about, and {news:?}");
            return Err((Rule::Asked, detail));
        }
        match &mut record.stream {
            Some(stream) => stream.on_news(news),
            None => Err((Rule::News, format!("{operation} does not stream"))),
        }
    }
}

fn is_own(record: &OperationRecord) -> bool {
    record
        .stream
        .as_ref()
        .is_some_and(super::StreamRecord::is_own)
}

#[cfg(test)]
mod tests;
