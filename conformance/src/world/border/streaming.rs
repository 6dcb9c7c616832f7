//! What is told about streamed calls: it has to add up to their ends.

use mcp_proto::continuation::{Source, StreamUpdate};
use mcp_proto::streaming::{StreamFrom, Streaming};
use mcp_proto::{News, Outcome, Reply};

use super::super::breach::{Broken, Rule};

/// A streamed call as the application sees it.
#[derive(Debug)]
pub(super) struct StreamRecord {
    from: StreamFrom,
    /// What the updates give.
    text: String,
    /// The newest attempt of the application's source, and whether it is open.
    source: Source,
    open: bool,
}

impl StreamRecord {
    pub(super) const fn new(streaming: Streaming) -> Self {
        Self {
            from: streaming.from,
            text: String::new(),
            source: 0,
            open: false,
        }
    }

    pub(super) fn on_news(&mut self, news: &News) -> Result<(), Broken> {
        let own = self.from == StreamFrom::Application;
        match news {
            News::StreamUpdate { update, .. } => match update {
                StreamUpdate::Text(text) if !text.is_empty() => self.text.push_str(text),
                StreamUpdate::Rewind { length_bytes: to }
                    if *to < self.text.len() && self.text.is_char_boundary(*to) =>
                {
                    self.text.truncate(*to);
                }
                other => return broken(format!("{other:?} changes nothing, or not this text")),
            },
            News::OpenSource { request, .. } if own && request.source == self.source + 1 => {
                (self.source, self.open) = (request.source, true);
            }
            News::CloseSource { source, .. } if self.open && *source == self.source => {
                self.open = false;
            }
            other => return broken(format!("{other:?} after source {}", self.source)),
        }
        Ok(())
    }

    /// All updates in order give the text of the end.
    pub(super) fn on_ended(&self, outcome: &Outcome) -> Result<(), Broken> {
        let text = match outcome {
            Outcome::Complete(Reply::Stream(result)) => Some(result.text.as_str()),
            Outcome::Failed(error) => error.partial_text(),
            Outcome::InputRequired(_) => None,
            Outcome::Complete(_) => return broken("it ended with another kind of reply".into()),
        };
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
    Err((Rule::News, detail))
}
