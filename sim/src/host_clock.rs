//! The clocks of a computer: one that counts from its boot, and a wall clock that drifts and is stepped.

use forewarn_lifecycle::{Now, Steady, Timestamp};
use forewarn_ownership::{BootId, StreamClock, Uptime};

/// The wall clock at the beginning: 2026-01-01T00:00:00.250Z, not a whole second, so that rounding shows.
const BEGINNING: i64 = 1_767_225_600_250;

#[derive(Clone, Debug)]
pub(crate) struct HostClock {
    pub(crate) boot: BootId,
    /// Uptime at the beginning of the simulation, in milliseconds; negative if the boot was later.
    pub(crate) uptime_at_start: i64,
    /// Milliseconds by which the wall clock is ahead.
    pub(crate) wall_ahead: i64,
    /// Parts of a million by which the wall clock runs too fast.
    pub(crate) drift: i64,
}

impl HostClock {
    pub(crate) fn uptime(&self, now: u64) -> Uptime {
        Uptime::from_millis(u64::try_from(now.cast_signed() + self.uptime_at_start).unwrap_or(0))
    }

    pub(crate) fn wall(&self, now: u64) -> Timestamp {
        let passed = now.cast_signed();
        Timestamp::from_millis(BEGINNING + passed + self.wall_ahead + passed * self.drift / 1_000_000)
    }

    /// Both clocks, as the owner of a stream reads them.
    pub(crate) fn read(&self, clock: &StreamClock, now: u64) -> Now {
        Now { wall: self.wall(now), steady: clock.at(self.uptime(now)) }
    }

    /// The computer starts again.
    pub(crate) fn reboot(&mut self, now: u64, boot: BootId) {
        (self.boot, self.uptime_at_start) = (boot, -now.cast_signed());
    }
}

/// The clocks before the beginning, for the first fleets.
pub(crate) fn before_the_beginning() -> Now {
    Now { wall: Timestamp::from_millis(BEGINNING - 60_000), steady: Steady::START }
}
