//! Keeping an eye on the clocks: a wall clock that was set, and a process that was asleep.
//!
//! Neither makes anything early; both are worth knowing of.

use std::time::Duration;

use forewarn_lifecycle::Now;

use crate::clock::{Clock, Kind};

/// What was seen of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockStep {
    /// Nothing worth a word.
    None,
    /// The wall clock was set forward by so much.
    Forward(Duration),
    /// The wall clock was set back by so much.
    Back(Duration),
    /// Nobody looked for so long: the process, or the computer, was stopped.
    Asleep(Duration),
}

/// How far the clocks may drift apart between two looks.
const DRIFT_MAX: Duration = Duration::from_secs(1);

/// How long it may be between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What the clocks showed at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockWatch(Option<Now>);

impl ClockWatch {
    /// Looks at a real clock, and reports a step in the log. Returns true if there was one. Nothing becomes early by it.
    pub(crate) fn report(&mut self, clock: &Clock) -> bool {
        if clock.kind() == Kind::Virtual {
            return false;
        }
        match self.look(clock.now()) {
            ClockStep::None => return false,
            ClockStep::Forward(step) => tracing::warn!(?step, "the wall clock was set forward"),
            ClockStep::Back(step) => tracing::warn!(?step, "the wall clock was set back"),
            ClockStep::Asleep(pause) => tracing::warn!(?pause, "the server was asleep"),
        }
        true
    }

    /// Looks at the clocks.
    fn look(&mut self, now: Now) -> ClockStep {
        let Some(before) = self.0.replace(now) else { return ClockStep::None };
        let passed = now.steady.since(before.steady);
        let expected = before.wall.plus(passed);
        let (ahead, behind) = (now.wall.since(expected), expected.since(now.wall));
        if ahead > DRIFT_MAX {
            ClockStep::Forward(ahead)
        } else if behind > DRIFT_MAX {
            ClockStep::Back(behind)
        } else if passed > PAUSE_MAX {
            ClockStep::Asleep(passed)
        } else {
            ClockStep::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::{Steady, Timestamp};

    fn now(wall: i64, steady: u64) -> Now {
        Now { wall: Timestamp::from_millis(wall * 1_000), steady: Steady::from_millis(steady * 1_000) }
    }

    #[test]
    fn a_step_of_the_wall_clock_is_told_from_time_that_passes() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.look(now(1_000, 50)), ClockStep::None, "the first look");
        assert_eq!(watch.look(now(1_001, 51)), ClockStep::None);
        assert_eq!(watch.look(now(1_062, 52)), ClockStep::Forward(Duration::from_secs(60)));
        assert_eq!(watch.look(now(1_063, 53)), ClockStep::None, "it goes on from there");
        assert_eq!(watch.look(now(1_004, 54)), ClockStep::Back(Duration::from_secs(60)));
        assert_eq!(watch.look(now(1_034, 84)), ClockStep::Asleep(Duration::from_secs(30)));
        assert_eq!(watch.look(now(1_035, 85)), ClockStep::None);
    }
}
