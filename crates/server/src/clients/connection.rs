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
use super::bodies::{AnswerBody, RequestBody};
use super::counts::{Limit, ListenerCounts};
use super::limits::{ClientLimits, HEAD_BYTES_MAX, HEAD_FIELDS_MAX};
use super::refusal::{ConnectionRefusal, RefusalFormat};
use super::stage::Stage;
use super::standing::{Deadline, Standing};
use super::stream::{Duplex, Watched};
use crate::tls::{Tls, shake_hands};

/// Facts that all connections of a listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: axum::Router,
    pub(super) refusal_format: RefusalFormat,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: LimitsCell,
    pub(super) counts: ListenerCounts,
    /// Refusals that may be sent at once; a further client is closed without an answer.
    pub(super) refusals: Semaphore,
    pub(super) stop: watch::Receiver<bool>,
}

/// Cause from outside of the protocol that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Another connection needs the place.
    Replaced,
    /// The client took too long.
    Late(Deadline),
    /// The server stops.
    Stopping,
}

impl Shared {
    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: Duplex, standing: &Arc<Standing>) {
        let limits = **self.limits.load();
        let mut guard = ConnectionWatch::new(standing, limits, self.stop.clone());
        let stream = match self.prepare(stream, &mut guard).await {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(interruption) => return self.count(interruption),
        };
        standing.enter(Stage::New);
        let answer = service_fn(|request| self.answer(standing, request));
        let io = TokioIo::new(Watched { stream, standing: Arc::clone(standing) });
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX).max_headers(HEAD_FIELDS_MAX);
        let mut connection = builder.serve_connection(io, answer);
        let end = poll_fn(|context| {
            // A connection that has lost its place begins no request: the request would be carried out and not answered.
            if !is_busy(standing.stage()) && guard.is_replaced(context) {
                return Poll::Ready(Some(Interruption::Replaced));
            }
            loop {
                // A client that hangs up or breaks the protocol has had its answer from the library.
                if let Poll::Ready(done) = Pin::new(&mut connection).poll(context) {
                    if done.is_err_and(|error| error.is_parse_too_large()) {
                        self.counts.ended(Limit::HeadBytes);
                    }
                    return Poll::Ready(None);
                }
                match guard.poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Interruption::Stopping) if is_busy(standing.stage()) => {
                        Pin::new(&mut connection).graceful_shutdown();
                    }
                    Poll::Ready(other) => return Poll::Ready(Some(other)),
                }
            }
        });
        if let Some(interruption) = end.await {
            self.count(interruption);
            let stream = connection.into_parts().io.into_inner().stream;
            if let Some(refusal) = refusal(interruption, standing.stage()) {
                self.refuse(refusal, stream).await;
            }
        }
    }

    /// Sends a refusal, unless too many are being sent.
    pub(super) async fn refuse(&self, refusal: ConnectionRefusal, stream: Duplex) {
        if let Ok(_place) = self.refusals.try_acquire() {
            refusal.send(self.refusal_format, stream).await;
        }
    }

    /// Refuses a client that has no place. A TLS client gets its answer after the handshake.
    pub(super) async fn refuse_newcomer(&self, stream: Duplex, standing: &Arc<Standing>) {
        let Ok(_place) = self.refusals.try_acquire() else { return };
        let mut guard = ConnectionWatch::new(standing, **self.limits.load(), self.stop.clone());
        if let Ok(Some(stream)) = self.prepare(stream, &mut guard).await {
            ConnectionRefusal::Busy.send(self.refusal_format, stream).await;
        }
    }

    /// Does the handshake, if this listener has TLS; no stream, if it failed.
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
                tracing::debug!(%error, "a handshake failed");
                Poll::Ready(Ok(None))
            }
            Poll::Pending => guard.poll(context).map(Err),
        })
        .await
    }

    async fn answer(
        &self,
        standing: &Arc<Standing>,
        request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, Infallible> {
        standing.enter(Stage::Handling);
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Arc::clone(standing));
        let body = Body::new(RequestBody { body, standing: Arc::clone(standing) });
        let router = TowerToHyperService::new(self.router.clone());
        let response = router.call(Request::from_parts(parts, body)).await?;
        standing.enter(Stage::Answer);
        Ok(response.map(|body| AnswerBody { body, standing: Arc::clone(standing) }))
    }

    fn count(&self, interruption: Interruption) {
        match interruption {
            Interruption::Late(Deadline { is_silence: true, .. }) => self.counts.ended(Limit::Silence),
            Interruption::Late(Deadline { stage, .. }) => self.counts.ended(Limit::of(stage)),
            // The table has counted the one that it replaced.
            Interruption::Replaced | Interruption::Stopping => {}
        }
    }
}

/// Answer to a request that is cut off, if nothing of another answer is on its way.
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
            | Stage::Answer
            | Stage::Flush,
        ) => None,
    }
}

fn is_busy(stage: Stage) -> bool {
    match stage {
        Stage::Handling | Stage::Body | Stage::Answer | Stage::Flush => true,
        Stage::Handshake | Stage::New | Stage::Idle | Stage::Head => false,
    }
}

/// Watch over one connection: its time, its place, and the end of the server.
struct ConnectionWatch {
    standing: Arc<Standing>,
    limits: ClientLimits,
    alarm: Pin<Box<Sleep>>,
    replaced: Pin<Box<dyn Future<Output = ()> + Send>>,
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ConnectionWatch {
    fn new(standing: &Arc<Standing>, limits: ClientLimits, mut stop: watch::Receiver<bool>) -> Self {
        let closing = Arc::clone(standing);
        // It is an error if nothing is left that could say so: then it is time to stop, too.
        let stopped = Box::pin(async move { drop(stop.wait_for(|stop| *stop).await) });
        Self {
            standing: Arc::clone(standing),
            limits,
            alarm: Box::pin(tokio::time::sleep_until(Instant::now())),
            replaced: Box::pin(async move { closing.closed().await }),
            stopped: Some(stopped),
        }
    }

    /// The next interruption. That the server stops is said once.
    /// Whether another connection has the place. After that, nothing may be asked of this.
    fn is_replaced(&mut self, context: &mut Context<'_>) -> bool {
        self.replaced.as_mut().poll(context).is_ready()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Interruption> {
        if self.is_replaced(context) {
            return Poll::Ready(Interruption::Replaced);
        }
        if self.stopped.as_mut().is_some_and(|stopped| stopped.as_mut().poll(context).is_ready()) {
            self.stopped = None;
            return Poll::Ready(Interruption::Stopping);
        }
        let deadline = self.standing.deadline(&self.limits);
        if self.alarm.deadline() != deadline.at {
            self.alarm.as_mut().reset(deadline.at);
        }
        self.alarm.as_mut().poll(context).map(|()| Interruption::Late(deadline))
    }
}
