//! What is told about streamed calls: it has to add up to their ends.

use mcp_proto::continuation::{Source, StreamTextPolicy, StreamUpdate};
use mcp_proto::streaming::{StreamFrom, Streaming};
use mcp_proto::{News, Outcome, Reply, StreamChunk};

use super::super::breach::{Broken, Rule};

/// A streamed call as the application sees it.
#[derive(Debug)]
pub(in super::super) struct StreamRecord {
    streaming: Streaming,
    /// The longest text that it may have.
    most: usize,
    /// What the updates give.
    text: String,
    /// The newest attempt of the application's source, and whether it is open.
    source: Source,
    open: bool,
    /// The key of the first attempt.
    key: Option<String>,
    /// The last checkpoint of the application's source, and how much text it covers.
    kept: Option<(String, usize)>,
}

impl StreamRecord {
    pub(super) const fn new(streaming: Streaming, most: usize) -> Self {
        Self {
            streaming,
            most,
            text: String::new(),
            source: 0,
            open: false,
            key: None,
            kept: None,
        }
    }

    pub(super) fn is_own(&self) -> bool {
        self.streaming.from == StreamFrom::Application
    }

    /// Whether the application was told to open its source.
    pub(super) const fn was_opened(&self) -> bool {
        self.source > 0
    }

    /// The application tells a piece, before the client hears of it.
    pub(in super::super) fn on_chunk(&mut self, source: Source, chunk: &StreamChunk) {
        if let Some(token) = &chunk.checkpoint_token
            && self.is_current(source)
        {
            self.kept = Some((token.clone(), self.text.len() + chunk.text.len()));
        }
    }

    /// The application says that a source is no more: it need not be closed.
    pub(in super::super) fn on_source_gone(&mut self, source: Source) {
        self.open &= !self.is_current(source);
    }

    fn is_current(&self, source: Source) -> bool {
        self.open && source == self.source
    }

    pub(super) fn on_news(&mut self, news: &News) -> Result<(), Broken> {
        match news {
            News::StreamUpdate { update, .. } => self.on_update(update),
            News::OpenSource { request, .. } => {
                let mut expected = (None, 0);
                if let Some((token, length)) = &self.kept {
                    expected = (Some(token.clone()), *length);
                }
                let key = self.key.get_or_insert_with(|| request.key.clone());
                let whole = self.streaming.text == StreamTextPolicy::Append;
                let starts_well = request.token == expected.0
                    && (whole || self.text.len() == expected.1)
                    && *key == request.key;
                if !self.is_own() || self.open || request.source != self.source + 1 || !starts_well
                {
                    return broken(format!("{request:?} after {self:?}"));
                }
                (self.source, self.open) = (request.source, true);
                Ok(())
            }
            News::CloseSource { source, .. } if self.is_current(*source) => {
                self.open = false;
                Ok(())
            }
            other => broken(format!("{other:?} after source {}", self.source)),
        }
    }

    fn on_update(&mut self, update: &StreamUpdate) -> Result<(), Broken> {
        match update {
            StreamUpdate::Text(text) if !text.is_empty() => self.text.push_str(text),
            StreamUpdate::Rewind { length_bytes: to }
                if *to < self.text.len()
                    && self.text.is_char_boundary(*to)
                    && self.streaming.text == StreamTextPolicy::Checkpointed =>
            {
                self.text.truncate(*to);
            }
            other => return broken(format!("{other:?} changes nothing, or not this text")),
        }
        if self.text.len() > self.most {
            let held = self.text.len();
            return broken(format!("{held} bytes of text, of at most {}", self.most));
        }
        Ok(())
    }

    /// All updates in order give the text of the end, and nothing is left open.
    pub(super) fn on_ended(&self, outcome: &Outcome) -> Result<(), Broken> {
        let text = match outcome {
            Outcome::Complete(Reply::Stream(result)) => Some(result.text.as_str()),
            Outcome::Failed(error) => error.partial_text(),
            Outcome::InputRequired(_) => None,
            Outcome::Complete(_) => return broken("it ended with another kind of reply".into()),
        };
        if self.open {
            return broken(format!("it ended, and source {} is open", self.source));
        }
        match text.filter(|text| *text != self.text) {
            Some(text) => broken(format!(
                "it was told {:?} and ended with {text:?}",
                self.text
            )),
            None => Ok(()),
        }
    }
}

fn broken(detail: String) -> Result<(), Broken> {
    Err((Rule::Stream, detail))
}

#[cfg(test)]
mod tests {
    use mcp_proto::OperationId;
    use mcp_proto::streaming::SourceRequest;

    use super::*;

    const MOST: usize = 8;

    fn record(from: StreamFrom) -> StreamRecord {
        let streaming = Streaming {
            from,
            ..Streaming::default()
        };
        StreamRecord::new(streaming, MOST)
    }

    fn text(text: &str) -> News {
        let (operation, update) = (OperationId::new(1), StreamUpdate::Text(text.into()));
        News::StreamUpdate { operation, update }
    }

    fn rewind(length_bytes: usize) -> News {
        let (operation, update) = (OperationId::new(1), StreamUpdate::Rewind { length_bytes });
        News::StreamUpdate { operation, update }
    }

    fn opens(source: Source, token: Option<&str>, key: &str) -> News {
        let (token, key) = (token.map(Into::into), key.into());
        News::OpenSource {
            operation: OperationId::new(1),
            request: SourceRequest { source, token, key },
        }
    }

    fn closes(source: Source) -> News {
        let operation = OperationId::new(1);
        News::CloseSource { operation, source }
    }

    fn checkpoint(record: &mut StreamRecord, source: Source, said: &str, token: &str) {
        let chunk = StreamChunk {
            text: said.into(),
            checkpoint_token: Some(token.into()),
            ..StreamChunk::default()
        };
        record.on_chunk(source, &chunk);
        record.on_news(&text(said)).unwrap();
    }

    /// The text is what was told, within its bound, and taken back only where it may be.
    #[test]
    fn text_that_does_not_add_up_is_a_breach() {
        let mut peer = record(StreamFrom::Peer);
        peer.on_news(&text("é")).unwrap();
        assert!(peer.on_news(&text("")).is_err());
        assert!(peer.on_news(&rewind(2)).is_err(), "changes nothing");
        assert!(peer.on_news(&rewind(1)).is_err(), "within a character");
        peer.on_news(&text("123456")).unwrap();
        assert!(peer.on_news(&text("7")).is_err(), "too long");
        let mut appends = StreamRecord {
            streaming: Streaming {
                text: StreamTextPolicy::Append,
                ..Streaming::default()
            },
            ..record(StreamFrom::Peer)
        };
        appends.on_news(&text("a")).unwrap();
        assert!(appends.on_news(&rewind(0)).is_err());
        appends.on_news(&text("1234567")).unwrap();
        let mut brief = record(StreamFrom::Peer);
        assert!(brief.on_news(&text("123456789")).is_err());
    }

    /// A source is opened once at a time, from the last checkpoint, under one key, and closed at the end.
    #[test]
    fn sources_that_overlap_or_begin_elsewhere_are_a_breach() {
        let fresh = || record(StreamFrom::Application);
        assert!(
            record(StreamFrom::Peer)
                .on_news(&opens(1, None, "k"))
                .is_err()
        );
        assert!(fresh().on_news(&opens(2, None, "k")).is_err());
        assert!(fresh().on_news(&opens(1, Some("t"), "k")).is_err());
        assert!(fresh().on_news(&closes(1)).is_err());

        let mut own = fresh();
        own.on_news(&opens(1, None, "k")).unwrap();
        assert!(own.on_news(&opens(2, None, "k")).is_err(), "two at once");
        checkpoint(&mut own, 1, "one", "t");
        own.on_source_gone(1);
        assert!(own.on_news(&closes(1)).is_err(), "it is gone");
        assert!(own.on_news(&opens(2, None, "k")).is_err(), "not from t");
        assert!(own.on_news(&opens(2, Some("t"), "other")).is_err());
        own.on_news(&text("more")).unwrap();
        assert!(own.on_news(&opens(2, Some("t"), "k")).is_err(), "uncovered");
        own.on_news(&rewind(3)).unwrap();
        own.on_news(&opens(2, Some("t"), "k")).unwrap();
        // What is said about the first one is late.
        own.on_chunk(
            1,
            &StreamChunk {
                checkpoint_token: Some("u".into()),
                ..StreamChunk::default()
            },
        );
        own.on_source_gone(1);
        let cancelled = mcp_proto::Error::general(mcp_proto::error::Cause::Cancelled);
        let cancelled = Outcome::Failed(cancelled);
        assert!(own.on_ended(&cancelled).is_err(), "2 is open");
        own.on_news(&closes(2)).unwrap();
        assert_eq!(own.kept, Some(("t".into(), 3)));
        assert!(own.on_ended(&cancelled).is_ok());
    }
}
