//! The driver and its clock: the time until something is due, and a virtual clock that is set.

use std::time::Duration;

use forewarn_control::request::{Reply, Request, RequestContext, SharedRequest};
use forewarn_control::{ControlError, Record};
use forewarn_lifecycle::{Now, simulator};

use super::{Driver, SLEEP_MAX};
use crate::clock::{CLOCK_END, ClockKind, Speed};
use crate::clock_policy::{self, ClockAdvance};
use crate::initial_state::Readers;
use crate::message::ClockCommand;

/// Interval between checks of driver programs while the server stops.
const STOPPING_POLL: Duration = Duration::from_millis(50);

impl Driver {
    /// Real time until there is something to do.
    pub(super) fn until_next(&self) -> Duration {
        if self.stopping.is_some() {
            return STOPPING_POLL;
        }
        if let Some(retry) = self.journal.until_retry() {
            return retry.min(SLEEP_MAX);
        }
        if self.readers == Readers::Absent {
            return SLEEP_MAX;
        }
        let wait = self.next_after(self.clock.now()).and_then(|span| self.clock.real_time_for(span));
        wait.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Time on the clock until something is due.
    fn next_after(&self, now: Now) -> Option<Duration> {
        let clusters = self.state.clusters();
        clusters.filter_map(|(id, one)| simulator::wait(one.rules(), now, self.runtimes.get(&id)?)).min()
    }

    /// Sets a virtual clock: everything that is due on the way happens at its own time.
    pub(super) fn set_clock(
        &mut self,
        command: ClockCommand,
        context: &RequestContext,
    ) -> Result<Now, ControlError> {
        debug_assert_eq!(self.clock.kind(), ClockKind::Virtual);
        let mut now = self.clock.now();
        let mut speed = self.clock.speed();
        self.settle(now);
        if let ClockCommand::Advance(span) = command
            && span > CLOCK_END.since(now.wall)
        {
            return Err(ControlError::EndOfTime);
        }
        // After a crash on the way, the clock is less far than requested, and never twice as far.
        let request = SharedRequest::SetClock { order: command.order(), context: context.clone() };
        if let Reply::Repeated(_) = self.decide(now, &Request::Shared(request))? {
            return Ok(now);
        }
        match command {
            ClockCommand::Run(chosen) => speed = chosen,
            ClockCommand::Advance(span) => {
                now = self.advance_clock(ClockAdvance::of(now, span), now, context)?;
            }
            ClockCommand::Next { within } => {
                now = self.advance_clock(ClockAdvance::to_next_change(now, within), now, context)?;
            }
        }
        self.clock.set(now, speed);
        self.record_clock(now);
        self.record_time_if_due();
        self.commit();
        if self.journal.is_broken() { Err(ControlError::Unavailable) } else { Ok(now) }
    }

    /// Records the clocks where they would otherwise go back, or stand still, over a restart.
    pub(super) fn record_time_if_due(&mut self) {
        if self.journal.is_durable() && !self.journal.is_broken() {
            let now = clock_policy::to_record(&self.clock, self.recorded_clock, &self.state);
            now.into_iter().for_each(|now| self.record_clock(now));
        }
    }

    pub(super) fn record_clock(&mut self, now: Now) {
        self.recorded_clock = now;
        self.record(Record::clock(now));
    }

    /// The latest time that readers may see: a virtual clock must not go back over a restart.
    pub(super) fn clock_limit(&self) -> Option<Now> {
        (self.journal.is_durable() && self.clock.kind() == ClockKind::Virtual).then_some(self.recorded_clock)
    }

    /// Sets the clock forward, from stop to stop.
    fn advance_clock(
        &mut self,
        advance: ClockAdvance,
        mut now: Now,
        context: &RequestContext,
    ) -> Result<Now, ControlError> {
        let before = advance.is_to_next_change.then(|| self.incarnations());
        while !self.journal.is_broken()
            && before.is_none_or(|before| before == self.incarnations())
            && let Some(stop) = advance.next_stop(now, self.next_after(now), &self.state)
        {
            now = self.stop_at(stop, context)?;
        }
        Ok(now)
    }

    /// Stops the clock at a time until everything that is due then is done. The receipt of the request is renewed:
    /// receipts expire on the same clock. Readers see the time before they see what happens then.
    pub(super) fn stop_at(&mut self, now: Now, context: &RequestContext) -> Result<Now, ControlError> {
        self.clock.set(now, Speed(0));
        let context = context.clone();
        self.decide(now, &Request::Shared(SharedRequest::KeepReceipt { context }))?;
        if self.journal.is_durable() {
            self.record_clock(now);
        }
        self.settle(now);
        Ok(now)
    }

    /// The number of documents and the sum of their incarnations: another one when a document has changed or is gone.
    fn incarnations(&self) -> (usize, u64) {
        let slots = self.runtimes.values().flat_map(|runtime| runtime.published.documents());
        slots.fold((0, 0), |(count, sum), slot| (count + 1, sum + slot.read().document.incarnation))
    }
}
