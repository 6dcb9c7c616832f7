//! Spans of the requests that are on their way (feature `tracing`, R51): opened where a request is written,
//! closed with the outcome that it has.

#[cfg(not(feature = "tracing"))]
pub(crate) use off::Context;
#[cfg(feature = "tracing")]
pub(crate) use on::Context;
#[cfg(feature = "tracing")]
pub(super) use on::Spans;

#[cfg(feature = "tracing")]
mod on {
    use alloc::borrow::Cow;
    use alloc::collections::BTreeMap;

    use serde_json::value::RawValue;
    use tracing::Span;

    use crate::error::Cause;
    use crate::identity::Params;
    use crate::ids::OperationId;
    use crate::operation::Outcome;
    use crate::peer::Peer;
    use crate::peer::requests::Owner;
    use crate::spans::{CallFacts, CallSpan, Target};
    use crate::types::text_member;

    /// The span under which the application asked for something.
    #[derive(Debug, Clone)]
    pub(crate) struct Context(Span);

    impl Context {
        /// That of the caller.
        pub(crate) fn current() -> Self {
            Self(Span::current())
        }

        /// That of nobody.
        pub(crate) const fn none() -> Self {
            Self(Span::none())
        }

        /// Does something as if the one who asked did it.
        pub(crate) fn within<T>(&self, act: impl FnOnce() -> T) -> T {
            self.0.in_scope(act)
        }
    }

    /// A span for each owner of a request.
    #[derive(Debug, Default)]
    pub(in crate::peer) struct Spans(BTreeMap<Owner, CallSpan>);

    impl Peer {
        /// A request is written. What the same owner sent before has been answered.
        pub(in crate::peer) fn open_span(
            &mut self,
            owner: Owner,
            request: u64,
            method: &'static str,
            params: Option<&Params>,
            context: Option<&Context>,
        ) {
            let params: Option<&RawValue> =
                params.and_then(|params| serde_json::from_str(params.as_str()).ok());
            let member = |name| {
                let text = params.and_then(|params| text_member(params, name));
                text.unwrap_or(Cow::Borrowed(""))
            };
            let (name, uri) = (member("name"), member("uri"));
            let facts = CallFacts {
                peer: &self.config.name,
                method,
                target: match method {
                    "tools/call" => Target::Tool(&name),
                    "prompts/get" => Target::Prompt(&name),
                    "resources/read" => Target::Resource(&uri),
                    _ => Target::None,
                },
                request_id: Some(request),
                version: self.session.as_ref().map(|session| session.dialect.version),
                transport: self.config.transport.kind(),
            };
            let span = match context {
                Some(context) => CallSpan::open_under(&facts, &context.0),
                None => CallSpan::open_under(&facts, &Span::none()),
            };
            self.spans.0.insert(owner, span);
        }

        /// An operation has its outcome.
        pub(in crate::peer) fn close_span(&mut self, operation: OperationId, outcome: &Outcome) {
            if let Some(span) = self.spans.0.remove(&Owner::Operation(operation)) {
                span.close(outcome);
            }
        }

        /// A request failed, and its operation goes on with another one.
        pub(in crate::peer) fn close_attempt(&mut self, operation: OperationId, cause: &Cause) {
            let failed = Outcome::Failed(self.error(cause.clone()));
            self.close_span(operation, &failed);
        }

        /// The requests of the negotiation have come to their end.
        pub(in crate::peer) fn close_negotiation_spans(&mut self) {
            let is_of_operation = |owner: &Owner| matches!(owner, Owner::Operation(_));
            self.spans.0.retain(|owner, _| is_of_operation(owner));
        }
    }
}

/// Nobody looks.
#[cfg(not(feature = "tracing"))]
#[allow(clippy::unused_self)] // as with the feature
mod off {
    use crate::error::Cause;
    use crate::identity::Params;
    use crate::ids::OperationId;
    use crate::operation::Outcome;
    use crate::peer::Peer;
    use crate::peer::requests::Owner;

    #[derive(Debug, Clone)]
    pub(crate) struct Context;

    impl Context {
        pub(crate) const fn current() -> Self {
            Self
        }

        pub(crate) const fn none() -> Self {
            Self
        }

        pub(crate) fn within<T>(&self, act: impl FnOnce() -> T) -> T {
            act()
        }
    }

    impl Peer {
        pub(in crate::peer) const fn open_span(
            &mut self,
            _: Owner,
            _: u64,
            _: &'static str,
            _: Option<&Params>,
            _: Option<&Context>,
        ) {
        }

        pub(in crate::peer) const fn close_span(&mut self, _: OperationId, _: &Outcome) {}

        pub(in crate::peer) const fn close_attempt(&mut self, _: OperationId, _: &Cause) {}

        pub(in crate::peer) const fn close_negotiation_spans(&mut self) {}
    }
}
