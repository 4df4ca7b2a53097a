//! The clocks of the agent. All decisions use the steady one, which also advances while the machine is suspended.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_types::{Steady, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The time since boot, including suspension.
pub(crate) fn now() -> Steady {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let millis = u64::try_from(time.tv_nsec / 1_000_000).unwrap_or(0);
    Steady::from_millis(seconds.saturating_mul(1_000).saturating_add(millis))
}

/// The wall clock, for display only.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
