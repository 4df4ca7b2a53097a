//! Replaces, keeps and saves the whole state of a server in memory.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::ControlHandle;
use crate::clock::ClockKind;
use crate::replacement::{ReplaceError, ServerState};
use crate::supervisor::SupervisorRequest;

impl ControlHandle {
    /// Returns to the state that was kept last: with [`Self::keep_state`], or at the start. Requests that have begun are
    /// answered first, later ones see the new state.
    ///
    /// # Errors
    /// Returns an error if the server is durable, has a real clock, or stops.
    pub async fn reset(&self) -> Result<(), ReplaceError> {
        self.check_replaceable()?;
        let kept = self.parts.kept_state.load_full().ok_or(ReplaceError::Durable)?;
        self.replace(kept).await
    }

    /// Replaces the whole state, like [`Self::reset`]. A later reset returns to the kept state all the same.
    ///
    /// # Errors
    /// Returns an error if the server is durable, has a real clock, or stops.
    pub async fn load_state(&self, state: ServerState) -> Result<(), ReplaceError> {
        self.check_replaceable()?;
        self.replace(Arc::new(state)).await
    }

    /// The whole state, as it is between two requests.
    ///
    /// # Errors
    /// Returns an error if the server is durable, has a real clock, or stops.
    pub async fn save_state(&self) -> Result<ServerState, ReplaceError> {
        self.check_replaceable()?;
        let _no_request = self.parts.gate.close().await;
        let context = &self.parts.context;
        let _no_decision = context.clock_gate.close().await;
        let log = context.broadcasts.reader.load().recent_log().ok_or(ReplaceError::Stopping)?;
        let snapshot = self.snapshot();
        Ok(ServerState {
            state: snapshot.state.clone(),
            identity: snapshot.identity,
            clock: context.clock.now(),
            speed: context.clock.speed(),
            log,
        })
    }

    /// Keeps the state for [`Self::reset`]. A server that cannot be reset keeps none.
    ///
    /// # Errors
    /// Returns an error if the server stops.
    pub async fn keep_state(&self) -> Result<(), ReplaceError> {
        match self.save_state().await {
            Ok(state) => {
                self.parts.kept_state.store(Some(Arc::new(state)));
                Ok(())
            }
            Err(ReplaceError::RealClock | ReplaceError::Durable) => Ok(()),
            Err(error @ ReplaceError::Stopping) => Err(error),
        }
    }

    /// Calls a function each time after the state was replaced, before the next request. It must not block, nor use a
    /// driver.
    pub fn on_replaced(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.parts.hooks.add(hook);
    }

    /// The number of replacements of the state so far.
    #[must_use]
    pub fn replacements(&self) -> u64 {
        *self.parts.context.broadcasts.replacements.borrow()
    }

    fn check_replaceable(&self) -> Result<(), ReplaceError> {
        match (self.clock().kind(), self.parts.is_durable) {
            (ClockKind::Real | ClockKind::Accelerated { .. }, _) => Err(ReplaceError::RealClock),
            (ClockKind::Virtual, true) => Err(ReplaceError::Durable),
            (ClockKind::Virtual, false) => Ok(()),
        }
    }

    /// Replaces the state. It is completed even if the caller goes away.
    async fn replace(&self, state: Arc<ServerState>) -> Result<(), ReplaceError> {
        let control = self.clone();
        let replacing = self.parts.runtime.spawn(async move {
            let _closed = control.parts.gate.close().await;
            let (reply, done) = oneshot::channel();
            let request = SupervisorRequest::Replace { state, reply };
            control.parts.requests.send(request).await.map_err(|_| ReplaceError::Stopping)?;
            done.await.map_err(|_| ReplaceError::Stopping)?;
            control.parts.rejections.clear();
            control.parts.hooks.call();
            Ok(())
        });
        replacing.await.unwrap_or(Err(ReplaceError::Stopping))
    }
}
