//! What the application says about streamed calls and retries.

use mcp_proto::OperationId;
use mcp_proto::StreamChunk;
use mcp_proto::continuation::Source;
use mcp_proto::safety::Question;

use super::World;

impl World {
    /// A piece of a source of the application's.
    pub fn chunk(&mut self, operation: OperationId, source: Source, chunk: StreamChunk) {
        self.note(format!("{operation} source {source} {:?}", chunk.text));
        self.client.chunk(operation, source, chunk, self.now);
        self.after_command();
    }

    /// That source ended.
    pub fn source_ended(&mut self, operation: OperationId, source: Source) {
        self.note(format!("{operation} source {source} ended"));
        self.client.source_ended(operation, source, self.now);
        self.after_command();
    }

    /// That source failed.
    pub fn source_failed(&mut self, operation: OperationId, source: Source, reason: &str) {
        self.note(format!("{operation} source {source} failed: {reason}"));
        self.client
            .source_failed(operation, source, reason, self.now);
        self.after_command();
    }

    /// Decides about a retry.
    pub fn decide(&mut self, operation: OperationId, question: Question, retry: bool) {
        self.note(format!("decide {operation} {retry}"));
        self.client.decide(operation, question, retry, self.now);
        self.after_command();
    }

    fn after_command(&mut self) {
        self.told = self.told.max(self.now);
        self.settle();
    }
}
