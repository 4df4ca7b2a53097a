//! One connection: handshake, requests one after the other, and its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::LimitsCell;
use super::bodies::{RequestBody, ResponseBody};
use super::connection_state::{ConnectionState, Deadline};
use super::counts::{Limit, ListenerCounts};
use super::limits::{ClientLimits, HEAD_BYTES_MAX, HEAD_FIELDS_MAX};
use super::refusal::{ConnectionRefusal, RefusalFormat};
use super::stage::Stage;
use super::stream::{Duplex, TrackedStream};
use crate::tls::{Tls, shake_hands};

/// State that all connections of a listener share.
#[derive(Debug)]
pub(super) struct ListenerShared {
    pub(super) router: axum::Router,
    pub(super) refusal_format: RefusalFormat,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: LimitsCell,
    pub(super) counts: ListenerCounts,
    /// Rejections that may be sent at once; a further client is closed without a response.
    pub(super) refusals: Semaphore,
    pub(super) stop: watch::Receiver<bool>,
}

/// Event outside the protocol that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Another connection takes its entry in the table.
    Replaced,
    /// The client took too long.
    Late(Deadline),
    Stopping,
}

impl ListenerShared {
    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: Duplex, state: &Arc<ConnectionState>) {
        let limits = **self.limits.load();
        let mut guard = ConnectionWatch::new(state, limits, self.stop.clone());
        let stream = match self.prepare(stream, &mut guard).await {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(interruption) => return self.count(interruption),
        };
        state.enter(Stage::New);
        let service = service_fn(|request| self.respond(state, request));
        let io = TokioIo::new(TrackedStream { stream, state: Arc::clone(state) });
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX).max_headers(HEAD_FIELDS_MAX);
        let mut connection = builder.serve_connection(io, service);
        let end = poll_fn(|context| {
            // A replaced connection begins no request: the request would be carried out without a response.
            if !is_busy(state.stage()) && guard.is_replaced(context) {
                return Poll::Ready(Some(Interruption::Replaced));
            }
            loop {
                // After a protocol error or a disconnect, the library has sent its response already.
                if let Poll::Ready(done) = Pin::new(&mut connection).poll(context) {
                    if done.is_err_and(|error| error.is_parse_too_large()) {
                        self.counts.ended(Limit::HeadBytes);
                    }
                    return Poll::Ready(None);
                }
                match guard.poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Interruption::Stopping) if is_busy(state.stage()) => {
                        Pin::new(&mut connection).graceful_shutdown();
                    }
                    Poll::Ready(other) => return Poll::Ready(Some(other)),
                }
            }
        });
        if let Some(interruption) = end.await {
            self.count(interruption);
            let stream = connection.into_parts().io.into_inner().stream;
            if let Some(refusal) = refusal(interruption, state.stage()) {
                self.refuse(refusal, stream).await;
            }
        }
    }

    /// Sends a rejection, unless too many are being sent.
    pub(super) async fn refuse(&self, refusal: ConnectionRefusal, stream: Duplex) {
        if let Ok(_permit) = self.refusals.try_acquire() {
            refusal.send(self.refusal_format, stream).await;
        }
    }

    /// Rejects a client without an entry in the table. A TLS client gets the response after the handshake.
    pub(super) async fn refuse_newcomer(&self, stream: Duplex, state: &Arc<ConnectionState>) {
        let Ok(_permit) = self.refusals.try_acquire() else { return };
        let mut guard = ConnectionWatch::new(state, **self.limits.load(), self.stop.clone());
        if let Ok(Some(stream)) = self.prepare(stream, &mut guard).await {
            ConnectionRefusal::Busy.send(self.refusal_format, stream).await;
        }
    }

    /// Does the TLS handshake, if this listener has TLS. None if it failed.
    async fn prepare(
        &self,
        stream: Duplex,
        guard: &mut ConnectionWatch,
    ) -> Result<Option<Duplex>, Interruption> {
        let (tls, stream) = match (&self.tls, stream) {
            (Some(tls), Duplex::Tcp(stream)) => (tls, stream),
            (Some(_) | None, stream) => return Ok(Some(stream)),
        };
        let mut handshake = pin!(shake_hands(stream, TlsAcceptor::from(tls.current())));
        poll_fn(|context| match handshake.as_mut().poll(context) {
            Poll::Ready(Ok(stream)) => Poll::Ready(Ok(Some(Duplex::Tls(Box::new(stream))))),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                Poll::Ready(Ok(None))
            }
            Poll::Pending => guard.poll(context).map(Err),
        })
        .await
    }

    async fn respond(
        &self,
        state: &Arc<ConnectionState>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        state.enter(Stage::Handling);
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Arc::clone(state));
        let body = Body::new(RequestBody { body, state: Arc::clone(state) });
        let router = TowerToHyperService::new(self.router.clone());
        let response = router.call(Request::from_parts(parts, body)).await?;
        state.enter(Stage::Response);
        Ok(response.map(|body| ResponseBody { body, state: Arc::clone(state) }))
    }

    fn count(&self, interruption: Interruption) {
        match interruption {
            Interruption::Late(Deadline { is_silence: true, .. }) => self.counts.ended(Limit::Silence),
            Interruption::Late(Deadline { stage, .. }) => self.counts.ended(Limit::of(stage)),
            // The table has counted it already.
            Interruption::Replaced | Interruption::Stopping => {}
        }
    }
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

fn is_busy(stage: Stage) -> bool {
    match stage {
        Stage::Handling | Stage::Body | Stage::Response | Stage::Flush => true,
        Stage::Handshake | Stage::New | Stage::Idle | Stage::Head => false,
    }
}

/// Watch over one connection: its deadline, its replacement, and the stop of the server.
struct ConnectionWatch {
    state: Arc<ConnectionState>,
    limits: ClientLimits,
    alarm: Pin<Box<Sleep>>,
    replaced: Pin<Box<dyn Future<Output = ()> + Send>>,
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ConnectionWatch {
    fn new(state: &Arc<ConnectionState>, limits: ClientLimits, mut stop: watch::Receiver<bool>) -> Self {
        let closing = Arc::clone(state);
        // An error means that the sender is gone: the server stops.
        let stopped = Box::pin(async move { drop(stop.wait_for(|stop| *stop).await) });
        Self {
            state: Arc::clone(state),
            limits,
            alarm: Box::pin(tokio::time::sleep_until(Instant::now())),
            replaced: Box::pin(async move { closing.closed().await }),
            stopped: Some(stopped),
        }
    }

    /// Returns true if another connection has taken the entry. It must not be polled again after that.
    fn is_replaced(&mut self, context: &mut Context<'_>) -> bool {
        self.replaced.as_mut().poll(context).is_ready()
    }

    /// The next interruption. The stop of the server is returned once.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Interruption> {
        if self.is_replaced(context) {
            return Poll::Ready(Interruption::Replaced);
        }
        if self.stopped.as_mut().is_some_and(|stopped| stopped.as_mut().poll(context).is_ready()) {
            self.stopped = None;
            return Poll::Ready(Interruption::Stopping);
        }
        let deadline = self.state.deadline(&self.limits);
        if self.alarm.deadline() != deadline.at {
            self.alarm.as_mut().reset(deadline.at);
        }
        self.alarm.as_mut().poll(context).map(|()| Interruption::Late(deadline))
    }
}
