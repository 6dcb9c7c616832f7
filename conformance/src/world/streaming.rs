//! What the application says about streamed calls and retries, and which tools it accepts.

use mcp_proto::Question;
use mcp_proto::continuation::Source;
use mcp_proto::peer::QuarantinedTool;
use mcp_proto::{Error, OperationId, StreamChunk};

use super::World;
use super::breach::Rule;

impl World {
    /// A source of the application's is open.
    pub fn source_opened(&mut self, operation: OperationId, source: Source) {
        self.note(format!("{operation} source {source} opened"));
        self.client.source_opened(operation, source, self.now);
        self.after_command(operation);
    }

    /// A piece of a source of the application's.
    pub fn chunk(&mut self, operation: OperationId, source: Source, chunk: StreamChunk) {
        let shown = super::transcript::chunk(&chunk);
        self.note(format!("{operation} source {source} {shown}"));
        if let Some(stream) = self.border.stream_of(operation) {
            stream.on_chunk(source, &chunk);
        }
        self.client.chunk(operation, source, chunk, self.now);
        self.after_command(operation);
    }

    /// That source ended.
    pub fn source_ended(&mut self, operation: OperationId, source: Source) {
        self.note(format!("{operation} source {source} ended"));
        if let Some(stream) = self.border.stream_of(operation) {
            stream.on_source_gone(source);
        }
        self.client.source_ended(operation, source, self.now);
        self.after_command(operation);
    }

    /// That source failed.
    pub fn source_failed(&mut self, operation: OperationId, source: Source, reason: &str) {
        self.note(format!("{operation} source {source} failed: {reason}"));
        if let Some(stream) = self.border.stream_of(operation) {
            stream.on_source_gone(source);
        }
        self.client
            .source_failed(operation, source, reason, self.now);
        self.after_command(operation);
    }

    /// Decides about a retry.
    pub fn decide(&mut self, operation: OperationId, question: Question, retry: bool) {
        self.note(format!("decide {operation} {retry}"));
        self.border.on_decided(operation, question, retry);
        self.client.decide(operation, question, retry, self.now);
        self.after_command(operation);
    }

    /// Accepts quarantined tools of a peer.
    ///
    /// # Errors
    /// Those of [`Client::accept_tools`](mcp_proto::Client::accept_tools).
    pub fn accept_tools(
        &mut self,
        peer: &str,
        names: Option<&[&str]>,
    ) -> Result<Vec<QuarantinedTool>, Error> {
        let accepted = self.client.accept_tools(peer, names);
        let tools = accepted.as_deref().unwrap_or_default();
        let shown: Vec<&str> = tools.iter().map(|tool| tool.tool.name()).collect();
        self.note(format!("accept of {peer} {}", shown.join(", ")));
        self.border.consent.on_accepted(tools);
        self.settle();
        accepted
    }

    /// The sources that the application was told to open, oldest first.
    #[must_use]
    pub fn sources(&self) -> &[(OperationId, Source)] {
        &self.sources
    }

    /// What the application was asked about retries, oldest first.
    #[must_use]
    pub fn retry_questions(&self) -> &[(OperationId, Question)] {
        &self.retry_questions
    }

    /// What is said about an operation that is over comes too late to change anything.
    fn after_command(&mut self, operation: OperationId) {
        let is_over = self.border.has_ended(operation);
        self.told = self.told.max(self.now);
        self.acted = false;
        self.settle();
        if is_over && self.acted {
            let detail = format!("{operation} was over, and something came of it");
            self.judge(Err((Rule::StaleFact, detail)));
        }
    }
}
