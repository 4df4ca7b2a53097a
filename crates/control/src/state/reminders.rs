//! Reminders of hosts that are ready for the work of a person: how often and when the last one was written, so that a
//! restart of the server repeats none and forgets none.

use std::time::Duration;

use forewarn_lifecycle::Timestamp;

/// The longest time between two reminders.
const INTERVAL_MAX: Duration = Duration::from_hours(24);

/// The messages that were written about a host since it is ready for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostReminders {
    /// The number of reminders; the first message is none.
    pub count: u32,
    /// Time of the last message.
    pub last: Timestamp,
}

impl HostReminders {
    /// The time of the next reminder: the first comes after an interval, each further one after twice the time, up to a
    /// day.
    #[must_use]
    pub fn next(self, interval: Duration) -> Timestamp {
        let doubled = 1_u32.checked_shl(self.count).and_then(|factor| interval.checked_mul(factor));
        // An interval that is longer than a day stays as it is.
        self.last.plus(doubled.unwrap_or(INTERVAL_MAX).min(INTERVAL_MAX.max(interval)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_reminders_grows_up_to_a_day() {
        let hours = |count, interval: u64| {
            let last = Timestamp::from_millis(0);
            let next = HostReminders { count, last }.next(Duration::from_hours(interval));
            next.since(last).as_secs() / 3600
        };
        assert_eq!([hours(0, 1), hours(1, 1), hours(2, 1), hours(4, 1), hours(5, 1)], [1, 2, 4, 16, 24]);
        assert_eq!([hours(31, 1), hours(32, 1), hours(u32::MAX, 1), hours(3, 48)], [24, 24, 24, 48]);
    }
}
