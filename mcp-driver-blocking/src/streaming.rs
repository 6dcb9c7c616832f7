//! Streamed calls, and operations about which the application is asked, as the application holds them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use mcp_proto::asking::{self, RetryQuestion, Said};
use mcp_proto::continuation::{StreamResult, StreamUpdate};
use mcp_proto::streaming::{OperationEvent, SourceRequest, SourceWish};
use mcp_proto::types::{InputRequired, InputResponses};
use mcp_proto::{Answer, CallOutcome, Ended, Error, OperationId, StreamChunk};

use crate::operation::Pending;

/// Opens a source of the application's.
pub(crate) type Open = Box<dyn FnMut(SourceRequest) -> Pieces + Send>;
type Pieces = Box<dyn Iterator<Item = Result<StreamChunk, String>> + Send>;
type Handler<Q, A> = Option<Arc<dyn Fn(&Q) -> A + Send + Sync>>;

/// Who answers when the application is asked.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) input: Handler<InputRequired, Option<InputResponses>>,
    pub(crate) retry: Handler<RetryQuestion, bool>,
}

impl Handlers {
    pub(crate) fn present(&self) -> asking::Handlers {
        let (input, retry) = (self.input.is_some(), self.retry.is_some());
        asking::Handlers { input, retry }
    }

    /// Asks who is to be asked; nobody is asked for whom there is no handler.
    fn ask(&self, event: &OperationEvent) -> Option<Said> {
        match event {
            OperationEvent::InputNeeded(asked) => {
                let responses = self.input.as_ref()?(&asked.input);
                Some(Said::Input(asked.question, responses))
            }
            OperationEvent::RetryQuestion(asked) => {
                let retry = self.retry.as_ref()?(asked);
                Some(Said::Retry(asked.question, retry))
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// A streamed call: an iterator over what changes in its text, which all together gives the text of its
/// result. Each step waits; [`Client::cancel`](crate::Client::cancel) from any thread ends the wait.
///
/// Dropping it cancels. An application that takes the updates late gets fewer and longer ones.
///
/// ```no_run
/// # fn example(client: mcp_driver_blocking::Client) -> Result<(), mcp_driver_blocking::Error> {
/// use mcp_driver_blocking::{CallOutcome, StreamUpdate};
///
/// let mut stream = client.call_tool_streaming("writer/write", ())?;
/// let mut text = String::new();
/// for update in &mut stream {
///     match update {
///         StreamUpdate::Text(more) => text.push_str(&more),
///         StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
///         _ => {}
///     }
/// }
/// if let CallOutcome::Complete(result) = stream.finish()? {
///     assert_eq!(result.text, text);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it cancels the call"]
pub struct ToolStream {
    pending: Pending,
    handlers: Handlers,
    open: Option<Open>,
    /// The source that is being read.
    reading: Reading,
}

impl fmt::Debug for ToolStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolStream").field(&self.pending.id).finish()
    }
}

impl ToolStream {
    pub(crate) fn new(pending: Pending, handlers: Handlers, open: Option<Open>) -> Self {
        Self {
            pending,
            handlers,
            open,
            reading: Reading::default(),
        }
    }

    /// The operation's number, with which any thread can [`cancel`](crate::Client::cancel) it.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.pending.id
    }

    /// Cancels; the call then ends at once with the text so far, unless it was complete before.
    pub fn cancel(&self) {
        self.pending.cancel();
    }

    /// Waits for what comes of the call; updates that were not taken are passed over.
    ///
    /// # Errors
    /// As for [`Client::call_tool`](crate::Client::call_tool); beside them
    /// [`StreamDropped`](crate::ErrorKind::StreamDropped) when it was dropped too often, and
    /// [`RetryRefused`](crate::ErrorKind::RetryRefused) when it could not be taken up safely. Both know the
    /// [text](Error::partial_text) so far, and the key and the checkpoint to go on with.
    pub fn finish(self) -> Result<CallOutcome<StreamResult>, Error> {
        CallOutcome::from_ended(self.ended())
    }

    /// Waits for the end of the operation; updates that were not taken are passed over.
    #[must_use]
    pub fn ended(mut self) -> Ended {
        while self.next().is_some() {}
        self.pending.wait()
    }

    fn serve(&mut self, wish: SourceWish) {
        let (SourceWish::Open(request), Some(open)) = (wish, &mut self.open) else {
            return self.reading.0.store(0, Ordering::Relaxed);
        };
        let (source, id) = (request.source, self.pending.id);
        self.reading.0.store(source, Ordering::Relaxed);
        let (reading, pieces) = (Arc::clone(&self.reading.0), open(request));
        let shared = Arc::clone(&self.pending.client.owner.0);
        let told = Arc::clone(&shared);
        let thread = thread::Builder::new().name("mcp-source".to_owned());
        let read = move || {
            told.with(|state| state.core.source_opened(id, source, state.now));
            for piece in pieces {
                let failed = piece.is_err();
                told.with(|state| match piece {
                    Ok(chunk) => state.core.chunk(id, source, chunk, state.now),
                    Err(reason) => state.core.source_failed(id, source, &reason, state.now),
                });
                if failed || reading.load(Ordering::Relaxed) != source {
                    return;
                }
            }
            told.with(|state| state.core.source_ended(id, source, state.now));
        };
        if let Err(error) = thread.spawn(read) {
            let reason = error.to_string();
            shared.with(|state| state.core.source_failed(id, source, &reason, state.now));
        }
    }
}

impl Iterator for ToolStream {
    type Item = StreamUpdate;

    fn next(&mut self) -> Option<StreamUpdate> {
        loop {
            match self.pending.event() {
                OperationEvent::Update(update) => return Some(update),
                OperationEvent::Source(wish) => self.serve(wish),
                OperationEvent::Over => return None,
                asked => {
                    if let Some(said) = self.handlers.ask(&asked) {
                        self.pending.say(&said);
                    }
                }
            }
        }
    }
}

/// Which source is being read; none after this is gone.
#[derive(Default)]
struct Reading(Arc<AtomicU32>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Opens a source of the application's, whose errors are words here.
pub(crate) fn opener<I, E>(mut source: impl FnMut(SourceRequest) -> I + Send + 'static) -> Open
where
    I: Iterator<Item = Result<StreamChunk, E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    Box::new(move |request| {
        let pieces = source(request);
        Box::new(pieces.map(|piece| piece.map_err(|error| error.to_string())))
    })
}
