//! One connection: handshake, requests one after the other, and its end.
//!
//! ```text
//!   handshake ─▶ idle ─▶ requests in the HTTP library ─▶ end
//!                  ▲        │              │
//!                  └────────┘              └─▶ a response without an end: detached
//! ```
//!
//! An idle connection has no HTTP library: its buffers are most of the memory of a connection.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use axum::http::{Request, Response, Version, header};
use hyper::body::{Body as HttpBody, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio_rustls::TlsAcceptor;

use super::bodies::{RequestBody, ResponseBody};
use super::connection_state::{ConnectionState, Reuse};
use super::connection_watch::{ConnectionWatch, Interruption};
use super::counts::Limit;
use super::detached::{DetachedStream, EndlessResponse, can_detach, is_endless};
use super::holder::ConnectionHandle;
use super::limits::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX};
use super::listener_shared::ListenerShared;
use super::refusal::ConnectionRefusal;
use super::stage::Stage;
use super::stream::{Duplex, TrackedStream};
use super::table::TableEntry;
use crate::tls::shake_hands;

/// The end of a series of requests.
enum SeriesEnd {
    /// The connection is idle.
    Idle(TrackedStream),
    /// A response without an end has begun.
    Endless(TrackedStream, Response<Body>),
    Closed,
}

impl ListenerShared {
    /// Serves a connection to its end, or to a response without an end.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: Duplex,
        state: Arc<ConnectionState>,
        entry: TableEntry,
    ) -> Option<DetachedStream> {
        let mut watch = ConnectionWatch::new(&state, self.limits(), self.stop.clone());
        let stream = match self.prepare(stream, &mut watch).await {
            Ok(stream) => stream?,
            Err(interruption) => {
                self.count(interruption);
                return None;
            }
        };
        state.enter(Stage::New);
        let mut idle = TrackedStream::new(stream, &state);
        loop {
            match watch.run(idle.wait()).await {
                Ok(Ok(())) => {}
                // The client has disconnected.
                Ok(Err(_)) => return None,
                Err(interruption) => {
                    self.end(interruption, &state, idle).await;
                    return None;
                }
            }
            match self.serve_requests(idle, &state, &mut watch).await {
                SeriesEnd::Idle(stream) => idle = stream,
                SeriesEnd::Endless(stream, response) => {
                    return Some(DetachedStream { stream, response, state, shared: self, entry });
                }
                SeriesEnd::Closed => return None,
            }
        }
    }

    /// Serves requests until the connection is idle.
    async fn serve_requests(
        self: &Arc<Self>,
        stream: TrackedStream,
        state: &Arc<ConnectionState>,
        watch: &mut ConnectionWatch,
    ) -> SeriesEnd {
        let endless = EndlessResponse::default();
        let service = service_fn(|request| self.respond(state, &endless, request));
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX).max_headers(HEAD_FIELDS_MAX);
        let mut connection = builder.serve_connection(TokioIo::new(stream), service);
        let end = poll_fn(|context| {
            // A replaced connection begins no request: the request would be carried out without a response.
            if !is_busy(state.stage()) && watch.is_replaced(context) {
                return Poll::Ready(LibraryEnd::Interrupted(Interruption::Replaced));
            }
            loop {
                // After a protocol error or a disconnect, the library has sent its response already.
                if let Poll::Ready(done) = Pin::new(&mut connection).poll(context) {
                    if done.is_err_and(|error| error.is_parse_too_large()) {
                        self.counts.ended(Limit::HeadBytes);
                    }
                    return Poll::Ready(LibraryEnd::Closed);
                }
                if endless.is_some() || state.is_idle() {
                    return Poll::Ready(LibraryEnd::Left);
                }
                match watch.poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Interruption::Stopping) if is_busy(state.stage()) => {
                        Pin::new(&mut connection).graceful_shutdown();
                    }
                    Poll::Ready(other) => return Poll::Ready(LibraryEnd::Interrupted(other)),
                }
            }
        });
        let end = end.await;
        if end == LibraryEnd::Closed {
            return SeriesEnd::Closed;
        }
        let parts = connection.into_parts();
        let stream = parts.io.into_inner().with_unread(&parts.read_buf);
        match (end, endless.take()) {
            (LibraryEnd::Interrupted(interruption), _) => {
                self.end(interruption, state, stream).await;
                SeriesEnd::Closed
            }
            (LibraryEnd::Closed | LibraryEnd::Left, Some(response)) => SeriesEnd::Endless(stream, response),
            (LibraryEnd::Closed | LibraryEnd::Left, None) => SeriesEnd::Idle(stream),
        }
    }

    /// Counts the end of a connection, and sends a rejection if the client waits for a response.
    async fn end(&self, interruption: Interruption, state: &ConnectionState, stream: TrackedStream) {
        self.count(interruption);
        if let Some(refusal) = refusal(interruption, state.stage()) {
            let wait = self.refusals.try_acquire().ok();
            refusal.send(self.refusal_format, stream.into_inner(), wait).await;
        }
    }

    /// Rejects a client without an entry in the table. A TLS client gets the response after the handshake; if too many
    /// handshakes of rejected clients are under way, it is closed.
    pub(super) async fn refuse_newcomer(&self, stream: Duplex, state: &Arc<ConnectionState>) {
        let wait = self.refusals.try_acquire().ok();
        if wait.is_none() && self.tls.is_some() {
            return;
        }
        let mut watch = ConnectionWatch::new(state, self.limits(), self.stop.clone());
        if let Ok(Some(stream)) = self.prepare(stream, &mut watch).await {
            ConnectionRefusal::Busy.send(self.refusal_format, stream, wait).await;
        }
    }

    /// Does the TLS handshake, if this listener has TLS. None if it failed.
    async fn prepare(
        &self,
        stream: Duplex,
        watch: &mut ConnectionWatch,
    ) -> Result<Option<Duplex>, Interruption> {
        let (tls, stream) = match (&self.tls, stream) {
            (Some(tls), Duplex::Tcp(stream)) => (tls, stream),
            (Some(_) | None, stream) => return Ok(Some(stream)),
        };
        // The handshake is large, and most of the time of a connection it is over.
        match watch.run(Box::pin(shake_hands(stream, TlsAcceptor::from(tls.current())))).await? {
            Ok(stream) => Ok(Some(Duplex::Tls(Box::new(stream)))),
            Err(error) => {
                tracing::debug!(%error, "TLS handshake failed");
                Ok(None)
            }
        }
    }

    async fn respond(
        self: &Arc<Self>,
        state: &Arc<ConnectionState>,
        endless: &EndlessResponse,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        state.enter(Stage::Handling);
        let can_detach = can_detach(&request);
        state.set_reuse(reuse(&request));
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(ConnectionHandle::new(self, state));
        let body = Body::new(RequestBody { body, state: Arc::clone(state) });
        let router = TowerToHyperService::new(self.router.clone());
        let response = router.call(Request::from_parts(parts, body)).await?;
        state.enter(Stage::Response);
        if response.headers().contains_key(header::CONNECTION) {
            state.set_reuse(Reuse::Unknown);
        }
        if can_detach && is_endless(&response) {
            endless.set(response);
            // The connection leaves the library at once, and drops this future.
            return pending().await;
        }
        Ok(response.map(|body| ResponseBody { body, state: Arc::clone(state) }))
    }
}

/// The end of the HTTP library on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LibraryEnd {
    /// The connection is idle, or has a response without an end.
    Left,
    Closed,
    Interrupted(Interruption),
}

/// Rejection of a request that is cut off, if no part of a response was sent.
fn refusal(interruption: Interruption, stage: Stage) -> Option<ConnectionRefusal> {
    match (interruption, stage) {
        (Interruption::Replaced, Stage::New | Stage::Head | Stage::Body) => Some(ConnectionRefusal::Busy),
        (Interruption::Late(_), Stage::Head | Stage::Body) => Some(ConnectionRefusal::TooSlow),
        (
            Interruption::Replaced | Interruption::Late(_) | Interruption::Stopping,
            Stage::Handshake
            | Stage::New
            | Stage::Idle
            | Stage::Head
            | Stage::Handling
            | Stage::Body
            | Stage::Response
            | Stage::Flush,
        ) => None,
    }
}

/// Reuse of a connection after a request. A request with unusual framing stays in the HTTP library, which may close the
/// connection: bytes after it must not be taken for a request.
fn reuse(request: &Request<Incoming>) -> Reuse {
    let unusual = [header::CONNECTION, header::TRANSFER_ENCODING, header::EXPECT, header::UPGRADE];
    let has_unusual = unusual.iter().any(|name| request.headers().contains_key(name));
    let lengths = request.headers().get_all(header::CONTENT_LENGTH).iter().count();
    if has_unusual || lengths > 1 || request.version() != Version::HTTP_11 {
        return Reuse::Unknown;
    }
    if request.body().is_end_stream() { Reuse::Certain } else { Reuse::AfterBody }
}

fn is_busy(stage: Stage) -> bool {
    match stage {
        Stage::Handling | Stage::Body | Stage::Response | Stage::Flush => true,
        Stage::Handshake | Stage::New | Stage::Idle | Stage::Head => false,
    }
}
