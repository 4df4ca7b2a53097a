//! Bodies of requests and responses that keep the state of their connection up to date.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::connection_state::ConnectionState;
use super::stage::Stage;

/// Body of a request. While a handler waits for more of it, the connection is in the stage of a body.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) body: Incoming,
    pub(super) state: Arc<ConnectionState>,
}

/// Body of a response. Its end is the end of the response.
#[derive(Debug)]
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) state: Arc<ConnectionState>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, state } = self.get_mut();
        let frame = Pin::new(&mut *body).poll_frame(context);
        match &frame {
            Poll::Pending => state.pass(Stage::Handling, Stage::Body),
            Poll::Ready(_) => state.pass(Stage::Body, Stage::Handling),
        }
        if matches!(frame, Poll::Ready(None)) || body.is_end_stream() {
            state.body_ended();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.state.pass(Stage::Response, Stage::Flush);
    }
}
