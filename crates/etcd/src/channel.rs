//! A connection as tonic sees it: a service that takes HTTP requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::http::{Request, Response};
use tonic::body::Body;
use tower::Service;

use crate::error::{Doubt, EtcdError, Obstacle, error_chain};

/// Sends requests over one connection.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    sender: SendRequest<Body>,
}

/// Reason why a request has no response.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct SendFailure {
    progress: SendProgress,
    message: String,
}

/// The part of the way that a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendProgress {
    /// No byte was sent.
    NotSent,
    MaybeSent,
}

impl Channel {
    pub(crate) fn new(sender: SendRequest<Body>) -> Self {
        Self { sender }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl SendFailure {
    pub(crate) fn error(&self, endpoint: String) -> EtcdError {
        match self.progress {
            SendProgress::NotSent => EtcdError::not_sent(endpoint, Obstacle::Unreachable, &self.message),
            SendProgress::MaybeSent => EtcdError::unknown(endpoint, Doubt::Broken, &self.message),
        }
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = SendFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, SendFailure>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), SendFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sent = self.sender.try_send_request(request);
        Box::pin(async {
            sent.await.map_err(|mut error| {
                // A request that comes back has not left.
                let is_returned = error.take_message().is_some();
                let progress = if is_returned { SendProgress::NotSent } else { SendProgress::MaybeSent };
                SendFailure { progress, message: error_chain(error.error()) }
            })
        })
    }
}
