//! Streamed calls, and operations about which the application is asked, as the application holds them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use mcp_proto::asking::{self, RetryQuestion, Said};
use mcp_proto::continuation::{Source, StreamResult, StreamUpdate};
use mcp_proto::streaming::{OperationEvent, SourceRequest, SourceWish};
use mcp_proto::types::{InputRequired, InputResponses};
use mcp_proto::{Answer, CallOutcome, Ended, Error, OperationId, StreamChunk};
use tokio::task::JoinHandle;

use crate::operation::Pending;
use crate::shared::{Shared, State};

/// Opens a source of the application's.
pub(crate) type Open = Box<dyn FnMut(SourceRequest) -> Pieces + Send>;
type Pieces = Pin<Box<dyn Stream<Item = Result<StreamChunk, String>> + Send>>;
type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Handler<Q, A> = Option<Arc<dyn Fn(Box<Q>) -> Later<A> + Send + Sync>>;

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
    fn ask(&self, event: OperationEvent) -> Option<Later<Said>> {
        match event {
            OperationEvent::InputNeeded(asked) => {
                let question = asked.question;
                let answer = self.input.as_ref()?(Box::new(asked.input));
                Some(Box::pin(async move { Said::Input(question, answer.await) }))
            }
            OperationEvent::RetryQuestion(asked) => {
                let question = asked.question;
                let answer = self.retry.as_ref()?(asked);
                Some(Box::pin(async move { Said::Retry(question, answer.await) }))
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

/// A streamed call: a stream of what changes in its text, which all together gives the text of its result.
///
/// Dropping it cancels. An application that takes the updates late gets fewer and longer ones.
///
/// ```no_run
/// # async fn example(client: mcp_driver_tokio::Client) -> Result<(), mcp_driver_tokio::Error> {
/// use mcp_driver_tokio::{CallOutcome, StreamUpdate};
///
/// let mut stream = client.call_tool_streaming("writer/write", ())?;
/// let mut text = String::new();
/// while let Some(update) = stream.next().await {
///     match update {
///         StreamUpdate::Text(more) => text.push_str(&more),
///         StreamUpdate::Rewind { length_bytes } => text.truncate(length_bytes),
///         _ => {}
///     }
/// }
/// if let CallOutcome::Complete(result) = stream.finish().await? {
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
    source: Option<Running>,
    asking: Option<Later<Said>>,
}

/// A source that is being read. It ends with this.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
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
            source: None,
            asking: None,
        }
    }

    /// The operation's number, for [`Client::cancel`](crate::Client::cancel).
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.pending.id
    }

    /// Cancels; the call then ends at once with the text so far, unless it was complete before.
    pub fn cancel(&self) {
        self.pending.cancel();
    }

    /// The next update; `None` once the call has ended and all was told. Dropping the returned future loses
    /// nothing. The same as polling the stream.
    pub async fn next(&mut self) -> Option<StreamUpdate> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// What came of the call; updates that were not taken are passed over.
    ///
    /// # Errors
    /// As for [`Client::call_tool`](crate::Client::call_tool); beside them
    /// [`StreamDropped`](crate::ErrorKind::StreamDropped) when it was dropped too often, and
    /// [`RetryRefused`](crate::ErrorKind::RetryRefused) when it could not be taken up safely. Both know the
    /// [text](Error::partial_text) so far, and the key and the checkpoint to go on with.
    pub async fn finish(self) -> Result<CallOutcome<StreamResult>, Error> {
        CallOutcome::from_ended(self.ended().await)
    }

    /// How the operation ended; updates that were not taken are passed over.
    pub async fn ended(mut self) -> Ended {
        while self.next().await.is_some() {}
        self.pending.await
    }

    fn serve(&mut self, wish: SourceWish) {
        self.source = None;
        if let (SourceWish::Open(request), Some(open)) = (wish, &mut self.open) {
            let (shared, source) = (self.pending.owner.0.clone(), request.source);
            let runtime = shared.runtime.clone();
            let reading = read(shared, self.pending.id, source, open(request));
            self.source = Some(Running(runtime.spawn(reading)));
        }
    }
}

impl Stream for ToolStream {
    type Item = StreamUpdate;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamUpdate>> {
        let this = &mut *self;
        loop {
            if let Some(asking) = &mut this.asking
                && let Poll::Ready(said) = asking.as_mut().poll(cx)
            {
                this.asking = None;
                let say = |state: &mut State, now| state.core.said(this.pending.id, &said, now);
                this.pending.owner.0.with(say);
            }
            let (shared, id) = (&this.pending.owner.0, this.pending.id);
            match ready!(shared.poll(id, cx, |inbox| inbox.take_event(id))) {
                OperationEvent::Update(update) => return Poll::Ready(Some(update)),
                OperationEvent::Source(wish) => this.serve(wish),
                OperationEvent::Over => {
                    (this.source, this.asking) = (None, None);
                    return Poll::Ready(None);
                }
                // Nobody is asked any more once that is withdrawn.
                asked => this.asking = this.handlers.ask(asked),
            }
        }
    }
}

/// Feeds the pieces of a source to the core.
async fn read(shared: Arc<Shared>, id: OperationId, source: Source, mut pieces: Pieces) {
    let tell = |tell: &dyn Fn(&mut mcp_proto::Client, mcp_proto::Instant)| {
        shared.with(|state: &mut State, now| tell(&mut state.core, now));
    };
    tell(&|core, now| core.source_opened(id, source, now));
    while let Some(piece) = poll_fn(|cx| pieces.as_mut().poll_next(cx)).await {
        match piece {
            Ok(chunk) => tell(&|core, now| core.chunk(id, source, chunk.clone(), now)),
            Err(reason) => {
                return tell(&|core, now| core.source_failed(id, source, &reason, now));
            }
        }
    }
    tell(&|core, now| core.source_ended(id, source, now));
}

/// Opens a source of the application's, whose errors are words here.
pub(crate) fn opener<S, E>(mut source: impl FnMut(SourceRequest) -> S + Send + 'static) -> Open
where
    S: Stream<Item = Result<StreamChunk, E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    Box::new(move |request| Box::pin(Mapped(Box::pin(source(request)))))
}

/// A stream of the application's as it is read here.
struct Mapped<S>(Pin<Box<S>>);

impl<S, E> Stream for Mapped<S>
where
    S: Stream<Item = Result<StreamChunk, E>>,
    E: fmt::Display,
{
    type Item = Result<StreamChunk, String>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.as_mut().poll_next(cx);
        next.map(|piece| piece.map(|piece| piece.map_err(|error| error.to_string())))
    }
}
