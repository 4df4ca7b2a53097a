//! The driver of the clock: steps of the system clock, and a virtual clock that is set.
//!
//! An advance stops at every time at which something is due in any cluster, until all clusters have done it.

use std::time::Duration;

use forewarn_control::ControlError;
use forewarn_control::request::{Reply, RequestContext, SharedRequest};
use forewarn_lifecycle::Now;
use forewarn_types::Moment;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{CLOCK_END, ClockKind, Speed};
use crate::clock_policy::{self, ClockAdvance};
use crate::clock_watch::ClockWatch;
use crate::clusters::ClusterRegistry;
use crate::driver::DriverContext;
use crate::gate::ClosedGate;
use crate::message::{ClockCommand, ClockMessage, ClusterMessage, SharedMessage};

pub(crate) struct ClockDriver {
    context: DriverContext,
    clusters: ClusterRegistry,
    /// The journal outlives the process: a virtual clock must not go back over a restart.
    is_durable: bool,
    /// A virtual clock as it was last recorded.
    recorded: Now,
    watch: ClockWatch,
}

/// Interval between two checks of the clock.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl ClockDriver {
    pub(crate) fn new(
        context: DriverContext,
        clusters: ClusterRegistry,
        is_durable: bool,
        recorded: Now,
    ) -> Self {
        let driver = Self { context, clusters, is_durable, recorded, watch: ClockWatch::default() };
        driver.publish_limit();
        driver
    }

    /// Runs until it is stopped, or no handle is left.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<ClockMessage>) {
        if self.limit().is_some_and(|limit| limit.steady < self.context.clock.now().steady) {
            // It is tried again with the next record.
            drop(self.record(self.context.clock.now()).await);
        }
        loop {
            self.record_if_due().await;
            let message = tokio::time::timeout(CHECK_INTERVAL, inbox.recv()).await;
            if self.watch.report(&self.context.clock) {
                self.context.broadcasts.count_clock_step();
            }
            match message {
                Err(_) => {}
                Ok(None) => return,
                Ok(Some(ClockMessage::Set { command, context, reply })) => {
                    // The caller may have gone.
                    reply.send(self.set(command, &context).await).ok();
                }
                Ok(Some(ClockMessage::Hold { held, release })) => {
                    held.send(()).ok();
                    // The sender is dropped.
                    release.await.ok();
                }
                Ok(Some(ClockMessage::Stop { reply })) => return reply.send(()).unwrap_or_default(),
            }
        }
    }

    /// Sets a virtual clock: everything that is due on the way happens at its own time.
    async fn set(&mut self, command: ClockCommand, context: &RequestContext) -> Result<Now, ControlError> {
        debug_assert_eq!(self.context.clock.kind(), ClockKind::Virtual);
        self.settle_all().await;
        let speed = self.context.clock.speed();
        // Only this driver sets the clock: it stands still until the request is done.
        self.set_speed(Speed(0)).await;
        let chosen = self.set_standing(command, context).await;
        self.set_speed(chosen.as_ref().ok().copied().flatten().unwrap_or(speed)).await;
        chosen?;
        let now = self.context.clock.now();
        self.record(now).await?;
        self.record_if_due().await;
        // Drivers sleep as long as the former speed allowed.
        self.settle_all().await;
        Ok(now)
    }

    /// Sets a clock that stands still. Returns the speed that it gets, if that changes.
    async fn set_standing(
        &mut self,
        command: ClockCommand,
        context: &RequestContext,
    ) -> Result<Option<Speed>, ControlError> {
        let now = self.context.clock.now();
        check_range(command, now)?;
        // After a crash on the way, the clock is less far than requested, and never twice as far.
        let request = SharedRequest::SetClock { order: command.order(), context: context.clone() };
        if let Reply::Repeated(_) = self.context.request_shared(request).await? {
            return Ok(None);
        }
        let advance = match command {
            // A frozen clock stands on a whole second, as every time in a document does.
            ClockCommand::Run(speed @ Speed(0)) => {
                self.advance(ClockAdvance::of(now, Duration::ZERO), context).await?;
                return Ok(Some(speed));
            }
            ClockCommand::Run(speed) => return Ok(Some(speed)),
            ClockCommand::Advance(span) => ClockAdvance::of(now, span),
            ClockCommand::Until(at) => ClockAdvance::of(now, at.since(now.wall)),
            ClockCommand::Next { within } => ClockAdvance::to_next_change(now, within),
        };
        self.advance(advance, context).await.map(|()| None)
    }

    /// Sets the speed of the clock, from now on.
    async fn set_speed(&self, speed: Speed) {
        let _closed = self.context.clock_gate.close().await;
        self.context.clock.set(self.context.clock.now(), speed);
    }

    /// Sets the clock forward, from stop to stop.
    async fn advance(&mut self, advance: ClockAdvance, context: &RequestContext) -> Result<(), ControlError> {
        let documents = || self.context.broadcasts.snapshot.load().document_changes();
        let before = advance.is_to_next_change.then(documents);
        while !*self.context.stop.borrow() {
            let closed = self.context.clock_gate.close().await;
            let (now, snapshot) = (self.context.clock.now(), self.context.broadcasts.snapshot.load_full());
            if before.is_some_and(|before| before != snapshot.document_changes()) {
                return Ok(());
            }
            // Anything that is due now and not done never will be: its cluster has failed.
            let Some(stop) = advance.next_stop(now, snapshot.next_later_than(now), &snapshot.state) else {
                return Ok(());
            };
            self.stop_at(stop, context, closed).await?;
        }
        Err(ControlError::Unavailable)
    }

    /// Stops the clock at a time until everything that is due then is done. The receipt of the request is renewed:
    /// receipts expire on the same clock. Readers see the time before they see what happens then.
    async fn stop_at(
        &mut self,
        stop: Now,
        context: &RequestContext,
        closed: ClosedGate,
    ) -> Result<(), ControlError> {
        if self.is_durable {
            self.record(stop).await?;
        }
        self.context.clock.set(stop, Speed(0));
        drop(closed);
        if context.once.is_some() {
            let context = context.clone();
            self.context.request_shared(SharedRequest::KeepReceipt { context }).await?;
        }
        let due = self.context.broadcasts.snapshot.load().clusters_due(stop);
        self.clusters.ask(due, |reply| ClusterMessage::Settle { reply }).await;
        match self.context.broadcasts.write_error.borrow().as_ref() {
            Some(_) => Err(ControlError::Unavailable),
            None => Ok(()),
        }
    }

    async fn settle_all(&self) {
        self.clusters.ask_all(|reply| ClusterMessage::Settle { reply }).await;
    }

    /// Records a virtual clock before readers see it.
    async fn record_if_due(&mut self) {
        if self.is_durable
            && self.context.broadcasts.write_error.borrow().is_none()
            && let Some(now) = clock_policy::to_record_ahead(&self.context.clock, self.recorded)
        {
            // It is tried again.
            drop(self.record(now).await);
        }
    }

    async fn record(&mut self, now: Now) -> Result<(), ControlError> {
        let shared = self.context.shared.upgrade().ok_or(ControlError::Unavailable)?;
        let (reply, result) = oneshot::channel();
        let message = SharedMessage::RecordClock { now, reply };
        shared.send(message).await.map_err(|_| ControlError::Unavailable)?;
        drop(shared);
        result.await.map_err(|_| ControlError::Unavailable)??;
        self.recorded = now;
        self.publish_limit();
        Ok(())
    }

    /// The latest time that readers may see: a virtual clock must not go back over a restart.
    fn limit(&self) -> Option<Now> {
        (self.is_durable && self.context.clock.kind() == ClockKind::Virtual).then_some(self.recorded)
    }

    fn publish_limit(&self) {
        let limit = self.limit();
        if limit.is_some() {
            self.context.broadcasts.publish(|snapshot| snapshot.clock_limit = limit);
        }
    }
}

/// A clock is set to a later time only, and not beyond its end.
fn check_range(command: ClockCommand, now: Now) -> Result<(), ControlError> {
    let span = match command {
        ClockCommand::Until(at) if at <= now.wall => return Err(ControlError::NotLater(Moment(at))),
        ClockCommand::Until(at) => at.since(now.wall),
        ClockCommand::Advance(span) => span,
        ClockCommand::Run(_) | ClockCommand::Next { .. } => return Ok(()),
    };
    if span > CLOCK_END.since(now.wall) { Err(ControlError::EndOfTime) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ClockPlan, later};
    use crate::control_handle::ControlHandle;
    use crate::hypervisor::Hypervisor;
    use forewarn_lifecycle::{Seed, Timestamp};

    /// promise: N4
    #[tokio::test]
    async fn readers_see_the_time_of_a_stop_before_they_see_what_happens_then() {
        let place = tempfile::tempdir().unwrap();
        let start = Some(Timestamp::from_millis(1_767_225_600_000));
        let plan = ClockPlan::Virtual { start, speed: Speed(0) };
        let control =
            ControlHandle::open(place.path(), Seed([5; 16]), plan, Hypervisor::simulated()).unwrap();
        let clock: Clock = control.clock().clone();
        let stop = later(clock.now(), Duration::from_mins(15));
        let mut driver = control.clock_driver();
        let closed = driver.context.clock_gate.close().await;
        driver.stop_at(stop, &RequestContext::default(), closed).await.unwrap();
        assert_eq!(control.snapshot().clock_limit, Some(stop));
        control.stop().await;
    }
}
