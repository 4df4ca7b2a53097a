//! Long responses that end with the token behind them, and with the session of the dashboard.
//!
//! Both are checked when the request arrives. A response that is streamed may take much longer: each chunk is
//! checked again when the connection takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio_stream::Stream;

use super::context::OperatorRequest;
use super::sessions::OpenSession;
use crate::control_handle::ControlHandle;
use forewarn_control::Permit;

/// A stream that ends when its token is revoked, expires, or is limited further, or when its session is over.
pub(super) struct WhileValid<S: Stream> {
    stream: S,
    control: ControlHandle,
    permit: Arc<Permit>,
    session: Option<OpenSession>,
    /// The last item of a stream that is cut off, if clients must not take it for complete.
    error: Option<S::Item>,
    is_over: bool,
}

impl<S: Stream> WhileValid<S> {
    /// A stream that ends without an error.
    pub(super) fn new(request: &OperatorRequest, stream: S) -> Self {
        let (control, permit) = (request.control.clone(), Arc::clone(&request.permit));
        Self { stream, control, permit, session: request.session.clone(), error: None, is_over: false }
    }

    /// A stream that breaks off with an error.
    pub(super) fn or_error(self, error: S::Item) -> Self {
        Self { error: Some(error), ..self }
    }

    fn is_valid(&self) -> bool {
        let is_open = self.session.as_ref().is_none_or(|session| session.is_open(Instant::now()));
        is_open && self.control.admits(&self.permit)
    }
}

/// The error with which a response breaks off.
pub(super) fn revoked() -> std::io::Error {
    std::io::Error::other("the token was revoked or has expired")
}

impl<S: Stream + Unpin> Stream for WhileValid<S>
where
    S::Item: Unpin,
{
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let item = ready!(Pin::new(&mut self.stream).poll_next(context));
        if item.is_none() || self.is_valid() {
            return Poll::Ready(item);
        }
        self.is_over = true;
        Poll::Ready(self.error.take())
    }
}
