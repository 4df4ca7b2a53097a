//! The driver and its clock: the time until something is due, and a virtual clock that is set.

use std::time::Duration;

use forewarn_control::request::{Reply, Request, RequestContext, SharedRequest};
use forewarn_control::{ClockOrder, ControlError, Entry, Record};
use forewarn_lifecycle::{Now, player};
use forewarn_types::Span;

use super::message::ClockCommand;
use super::{Driver, Readers, SLEEP_MAX};
use crate::clock::{CLOCK_END, Kind, Speed, later};
use crate::clock_watch::ClockStep;

/// Real time by which a running virtual clock is recorded ahead: a restart sets it forward by that at most.
const AHEAD: Duration = Duration::from_secs(10);

/// Time between two looks at driver programs while the server stops.
const STOPPING_LOOK: Duration = Duration::from_millis(50);

/// Time between two records of the steady clock while something waits on it.
const NOTED_EVERY: Duration = Duration::from_mins(1);

impl Driver {
    /// Real time until there is something to do.
    pub(super) fn until_next(&self) -> Duration {
        if self.stopping.is_some() {
            return STOPPING_LOOK;
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
        clusters.filter_map(|(id, one)| player::wait(one.rules(), now, self.runtimes.get(&id)?)).min()
    }

    /// Sets a virtual clock: everything that is due on the way happens at its own time.
    pub(super) fn set_clock(
        &mut self,
        command: ClockCommand,
        context: &RequestContext,
    ) -> Result<Now, ControlError> {
        debug_assert_eq!(self.clock.kind(), Kind::Virtual);
        let mut now = self.clock.now();
        let mut speed = self.clock.speed();
        self.settle(now);
        if let ClockCommand::Advance(span) = command
            && span > CLOCK_END.since(now.wall)
        {
            return Err(ControlError::EndOfTime);
        }
        // If the process ends on the way, the clock is set less far than was wanted, and never twice as far.
        let request = SharedRequest::SetClock { order: order(command), context: context.clone() };
        if let Reply::Repeated(_) = self.decide(now, &Request::Shared(request))? {
            return Ok(now);
        }
        match command {
            ClockCommand::Run(chosen) => speed = chosen,
            ClockCommand::Advance(span) => {
                let end = now.steady.plus(to_whole_second(now, span));
                while now.steady < end && !self.journal.is_broken() {
                    let left = end.since(now.steady);
                    let next = self.next_after(now).map_or(left, |next| next.min(left));
                    now = self.stop_at(later(now, next), context)?;
                }
            }
            ClockCommand::Next { within } => now = self.run_to_next_change(now, within, context)?,
        }
        self.clock.set(now, speed);
        self.record_clock(now);
        self.note_time();
        self.commit();
        if self.journal.is_broken() { Err(ControlError::Unavailable) } else { Ok(now) }
    }

    /// Reports steps of a real clock. Nothing becomes early by them.
    pub(super) fn watch_clock(&mut self) {
        if self.clock.kind() == Kind::Virtual {
            return;
        }
        match self.clock_watch.look(self.clock.now()) {
            ClockStep::None => return,
            ClockStep::Forward(step) => tracing::warn!(?step, "the wall clock was set forward"),
            ClockStep::Back(step) => tracing::warn!(?step, "the wall clock was set back"),
            ClockStep::Asleep(pause) => tracing::warn!(?pause, "the server was asleep"),
        }
        self.broadcasts.count_clock_step();
    }

    /// Records the clocks where they would otherwise go back, or stand still, over a restart: a running virtual clock ahead of
    /// time, before anyone sees it; the steady clock every minute while something waits on it.
    pub(super) fn note_time(&mut self) {
        if !self.journal.is_durable() || self.journal.is_broken() {
            return;
        }
        let now = self.clock.now();
        let noted = match self.clock.kind() {
            Kind::Virtual => {
                let ahead = AHEAD.saturating_mul(self.clock.speed().0);
                (later(now, ahead / 2).steady > self.noted.steady && !ahead.is_zero())
                    .then(|| later(now, ahead))
            }
            Kind::Real => {
                let is_due = now.steady.since(self.noted.steady) >= NOTED_EVERY;
                (is_due && self.is_busy()).then_some(now)
            }
        };
        noted.into_iter().for_each(|now| self.record_clock(now));
    }

    pub(super) fn record_clock(&mut self, now: Now) {
        self.noted = now;
        self.record(Record { now, entry: Entry::Clock });
    }

    /// The latest time that readers may see: a virtual clock must not go back over a restart.
    pub(super) fn clock_limit(&self) -> Option<Now> {
        (self.journal.is_durable() && self.clock.kind() == Kind::Virtual).then_some(self.noted)
    }

    fn run_to_next_change(
        &mut self,
        mut now: Now,
        within: Option<Duration>,
        context: &RequestContext,
    ) -> Result<Now, ControlError> {
        let before = self.incarnations();
        let end = within.map(|span| now.steady.plus(to_whole_second(now, span)));
        while self.incarnations() == before && !self.journal.is_broken() {
            if end.is_none() && !self.is_busy() {
                break;
            }
            let left = end.map(|end| end.since(now.steady));
            if left == Some(Duration::ZERO) {
                break;
            }
            let Some(next) = self.next_after(now).into_iter().chain(left).min() else { break };
            if next > CLOCK_END.since(now.wall) {
                break;
            }
            now = self.stop_at(later(now, next), context)?;
        }
        Ok(now)
    }

    /// Returns true if time alone may change a document: something is announced or under way.
    fn is_busy(&self) -> bool {
        let mut rules = self.state.clusters().map(|(_, one)| one.rules());
        rules.any(|rules| rules.maintenances().next().is_some() || rules.rollouts().next().is_some())
    }

    /// Stops the clock at a time until everything that is due then is done. The receipt of the request is renewed: receipts grow
    /// old on the same clock.
    fn stop_at(&mut self, now: Now, context: &RequestContext) -> Result<Now, ControlError> {
        self.clock.set(now, Speed(0));
        let context = context.clone();
        self.decide(now, &Request::Shared(SharedRequest::KeepReceipt { context }))?;
        self.settle(now);
        Ok(now)
    }

    /// The number of documents and the sum of their incarnations: another one when a document has changed or is gone.
    fn incarnations(&self) -> (usize, u64) {
        let slots = self.runtimes.values().flat_map(|runtime| runtime.documents.values());
        slots.fold((0, 0), |(count, sum), slot| (count + 1, sum + slot.read().document.incarnation))
    }
}

/// A span that ends on a whole second, as every time in a document does: an advance by the time that is left gets there.
fn to_whole_second(now: Now, span: Duration) -> Duration {
    now.wall.plus(span).rounded_up().since(now.wall).max(span)
}

fn order(command: ClockCommand) -> ClockOrder {
    match command {
        ClockCommand::Run(Speed(0)) => ClockOrder::Freeze {},
        ClockCommand::Run(Speed(speed)) => ClockOrder::Scale { speed },
        ClockCommand::Advance(by) => ClockOrder::Advance { by: Span(by) },
        ClockCommand::Next { within } => ClockOrder::Next { within: within.map(Span) },
    }
}
