//! Detects steps of the system clock and suspensions of the process.
//!
//! Neither makes anything start early.

use std::time::Duration;

use forewarn_lifecycle::{Now, Steady};

use crate::boot;
use crate::clock::{Clock, ClockKind, wall};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockStep {
    None,
    Forward(Duration),
    Back(Duration),
    /// The process, or the computer, was suspended.
    Asleep(Duration),
}

/// Drift between two checks that is tolerated.
const DRIFT_MAX: Duration = Duration::from_secs(1);

/// Interval between two checks that is tolerated.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Clocks at the last check.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockWatch(Option<Now>);

impl ClockWatch {
    /// Checks the system clock and logs a step. Returns true if there was one.
    pub(crate) fn report(&mut self, clock: &Clock) -> bool {
        if clock.kind() == ClockKind::Virtual {
            return false;
        }
        let uptime = u64::try_from(boot::elapsed().as_millis()).unwrap_or(u64::MAX);
        match self.check(Now { wall: wall(), steady: Steady::from_millis(uptime) }) {
            ClockStep::None => return false,
            ClockStep::Forward(step) => tracing::warn!(?step, "system clock was set forward"),
            ClockStep::Back(step) => tracing::warn!(?step, "system clock was set back"),
            ClockStep::Asleep(pause) => tracing::warn!(?pause, "server was suspended"),
        }
        true
    }

    /// Compares the clocks with the last check.
    fn check(&mut self, now: Now) -> ClockStep {
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
    use forewarn_lifecycle::Timestamp;

    fn now(wall: i64, steady: u64) -> Now {
        Now { wall: Timestamp::from_millis(wall * 1_000), steady: Steady::from_millis(steady * 1_000) }
    }

    #[test]
    fn a_step_of_the_system_clock_differs_from_passing_time() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.check(now(1_000, 50)), ClockStep::None, "the first check");
        assert_eq!(watch.check(now(1_001, 51)), ClockStep::None);
        assert_eq!(watch.check(now(1_062, 52)), ClockStep::Forward(Duration::from_secs(60)));
        assert_eq!(watch.check(now(1_063, 53)), ClockStep::None, "it goes on from there");
        assert_eq!(watch.check(now(1_004, 54)), ClockStep::Back(Duration::from_secs(60)));
        assert_eq!(watch.check(now(1_034, 84)), ClockStep::Asleep(Duration::from_secs(30)));
        assert_eq!(watch.check(now(1_035, 85)), ClockStep::None);
    }
}
