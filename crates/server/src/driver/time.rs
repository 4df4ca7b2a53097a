//! The driver and its clock: how long there is nothing to do, and driving a virtual clock.

use std::time::Duration;

use forewarn_control::ClockOrder;
use forewarn_imds::Span;
use forewarn_lifecycle::Now;
use forewarn_store::{Entry, Record};
use serde_json::Value;
use tokio::sync::mpsc;

use super::administration::nothing;
use super::vigil::Sight;
use super::{Driver, Readers, SLEEP_MAX};
use crate::clock::{CLOCK_END, Kind, Speed, later};
use crate::engine::{ClockCommand, Problem, Request, Terms};

/// How far ahead of a virtual clock that runs it is written down, in real time: a restart sets it forward by that at most.
const AHEAD: Duration = Duration::from_secs(10);

/// How often it is looked whether everything has stopped.
const STOPPING_LOOK: Duration = Duration::from_millis(50);

/// How often the steady clock is written down while something waits on it.
const NOTED_EVERY: Duration = Duration::from_mins(1);

impl Driver {
    /// How long, in real time, there is nothing to do.
    pub(super) fn until_next(&self) -> Duration {
        if self.stopping.is_some() {
            return STOPPING_LOOK;
        }
        if let Some(retry) = self.keeping.until_retry() {
            return retry.min(SLEEP_MAX);
        }
        if self.readers == Readers::Absent {
            return SLEEP_MAX;
        }
        let wait = self.next_after(self.clock.now()).and_then(|span| self.clock.real_time_for(span));
        wait.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// How long it is, on the clock, until something is due.
    pub(super) fn next_after(&self, now: Now) -> Option<Duration> {
        let clusters = self.kept.clusters.values();
        let rules = clusters.filter_map(|estate| Some(estate.cluster.next_deadline()?.wait(now)));
        let machines = self.wards.values().filter_map(|ward| Some(ward.pretend.next()?.since(now.steady)));
        rules.chain(machines).min()
    }

    /// Drives a virtual clock: everything that is due on the way happens at its own moment.
    pub(super) fn drive(
        &mut self,
        command: ClockCommand,
        terms: &Terms,
        own: &mpsc::WeakSender<Request>,
    ) -> Result<Now, Problem> {
        debug_assert_eq!(self.clock.kind(), Kind::Virtual);
        let mut now = self.clock.now();
        let mut speed = self.clock.speed();
        self.settle(now, own);
        self.check_token(now, terms)?;
        if self.receipt(now, terms)?.is_some() {
            return Ok(now);
        }
        if let ClockCommand::Advance(span) = command
            && span > CLOCK_END.since(now.wall)
        {
            return Err(Problem::EndOfTime);
        }
        self.tell_command(now, None, &terms.by, &told(command));
        self.told();
        // Should the process end on the way, the clock is set less far than was wanted, and never twice as far.
        self.keep_receipt(now, terms, &nothing(now))?;
        match command {
            ClockCommand::Run(chosen) => speed = chosen,
            ClockCommand::Advance(span) => {
                let end = now.steady.plus(to_whole_second(now, span));
                while now.steady < end && !self.keeping.is_broken() {
                    let left = end.since(now.steady);
                    let next = self.next_after(now).map_or(left, |next| next.min(left));
                    now = self.stop_at(later(now, next), terms, own)?;
                }
            }
            ClockCommand::Next { within } => now = self.run_to_next_change(now, within, terms, own)?,
        }
        self.clock.set(now, speed);
        self.batch.records.push(Record { now, entry: Entry::Clock });
        self.note_time();
        self.commit(own);
        if self.keeping.is_broken() { Err(Problem::Unavailable) } else { Ok(now) }
    }

    /// Says what is odd about a real clock; nothing becomes early by it.
    pub(super) fn keep_vigil(&mut self) {
        if self.clock.kind() == Kind::Virtual {
            return;
        }
        match self.vigil.look(self.clock.now()) {
            Sight::Steady => return,
            Sight::Forward(step) => tracing::warn!(?step, "the wall clock was set forward"),
            Sight::Back(step) => tracing::warn!(?step, "the wall clock was set back"),
            Sight::Asleep(pause) => tracing::warn!(?pause, "the server was asleep"),
        }
        self.heralds.count_clock_step();
    }

    /// Writes down what the clocks show, where they would otherwise go back, or stand still, over a restart: a virtual clock
    /// that runs, ahead of time, and before anybody is told what it shows; the steady clock, every minute while it is needed.
    pub(super) fn note_time(&mut self) {
        if !self.keeping.is_durable() || self.keeping.is_broken() {
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
        if let Some(now) = noted {
            self.noted = now;
            self.batch.records.push(Record { now, entry: Entry::Clock });
        }
    }

    fn run_to_next_change(
        &mut self,
        mut now: Now,
        within: Option<Duration>,
        terms: &Terms,
        own: &mpsc::WeakSender<Request>,
    ) -> Result<Now, Problem> {
        let shown = self.shown();
        let end = within.map(|span| now.steady.plus(to_whole_second(now, span)));
        while self.shown() == shown && !self.keeping.is_broken() {
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
            now = self.stop_at(later(now, next), terms, own)?;
        }
        Ok(now)
    }

    /// Whether time alone may change a document: where nothing is announced or under way, it cannot.
    fn is_busy(&self) -> bool {
        let mut clusters = self.kept.clusters.values().map(|estate| &estate.cluster);
        clusters.any(|cluster| cluster.maintenances().next().is_some() || cluster.rollouts().next().is_some())
    }

    /// The clock stands there until everything that is due then is done. What it was driven there by must not be forgotten on
    /// the way: a receipt grows old on the same clock.
    fn stop_at(&mut self, now: Now, terms: &Terms, own: &mpsc::WeakSender<Request>) -> Result<Now, Problem> {
        self.clock.set(now, Speed(0));
        self.keep_receipt(now, terms, &nothing(now))?;
        self.settle(now, own);
        Ok(now)
    }

    /// What is another when time has changed a document, or taken one away: incarnations only grow, and the number of
    /// documents tells when one that goes would make up for others that have grown.
    fn shown(&self) -> (usize, u64) {
        let slots = self.wards.values().flat_map(|ward| ward.slots.values());
        slots.fold((0, 0), |(count, sum), slot| (count + 1, sum + slot.read().document.incarnation))
    }
}

/// A span that ends on a whole second, as every time in a document does: who goes on by the time that is left gets there.
fn to_whole_second(now: Now, span: Duration) -> Duration {
    now.wall.plus(span).rounded_up().since(now.wall).max(span)
}

/// What the clock was told, as it is kept.
fn told(command: ClockCommand) -> Value {
    let order = match command {
        ClockCommand::Run(Speed(0)) => ClockOrder::Freeze {},
        ClockCommand::Run(Speed(speed)) => ClockOrder::Scale { speed },
        ClockCommand::Advance(by) => ClockOrder::Advance { by: Span(by) },
        ClockCommand::Next { within } => ClockOrder::Next { within: within.map(Span) },
    };
    serde_json::to_value(order).unwrap_or_default()
}
