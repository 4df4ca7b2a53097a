//! Watch over one connection: its deadline, its replacement, and the stop of the server.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::connection_state::{ConnectionState, Deadline};
use super::limits::ClientLimits;

/// Event outside the protocol that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// Another connection takes its entry in the table.
    Replaced,
    /// The client took too long.
    Late(Deadline),
    Stopping,
}

/// Watch over one connection: its deadline, its replacement, and the stop of the server.
pub(super) struct ConnectionWatch {
    state: Arc<ConnectionState>,
    limits: ClientLimits,
    alarm: Pin<Box<Sleep>>,
    replaced: Pin<Box<dyn Future<Output = ()> + Send>>,
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ConnectionWatch {
    pub(super) fn new(
        state: &Arc<ConnectionState>,
        limits: ClientLimits,
        mut stop: watch::Receiver<bool>,
    ) -> Self {
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
    pub(super) fn is_replaced(&mut self, context: &mut Context<'_>) -> bool {
        self.replaced.as_mut().poll(context).is_ready()
    }

    /// The next interruption. The stop of the server is returned once.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Interruption> {
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

    /// Runs a future to its end, or until the first interruption.
    pub(super) async fn run<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Interruption> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending => self.poll(context).map(Err),
        })
        .await
    }

    /// The same for a future that ends by itself when the server stops.
    pub(super) async fn while_running<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        let mut future = pin!(future);
        loop {
            match self.run(future.as_mut()).await {
                Err(Interruption::Stopping) => {}
                ended @ (Ok(_) | Err(Interruption::Replaced | Interruption::Late(_))) => return ended,
            }
        }
    }
}
