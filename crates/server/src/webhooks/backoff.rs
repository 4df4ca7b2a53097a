//! Pauses between delivery attempts, and the age after which entries are given up.
//!
//! Pauses double up to ten minutes, with jitter, so that webhooks that failed together do not retry together. Entries
//! older than a day are given up. Their age is measured by hourly marks of the end of the audit log, on a monotonic
//! clock.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// The longest `Retry-After` that is honoured, and the pause after 410 Gone.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// Entries of this age are given up while the receiver accepts nothing.
const LIFE: Duration = Duration::from_hours(24);

const MARK_INTERVAL: Duration = Duration::from_hours(1);

/// Kind of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    Temporary,
    /// The receiver sent `Retry-After`.
    RetryAfter(Duration),
    /// The receiver answered 410.
    Gone,
}

/// State of the retries of one webhook.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    tries: u32,
    /// Oldest first; empty after a success.
    marks: VecDeque<Mark>,
}

/// End of the audit log at a moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    noted: Instant,
    /// Age of the mark when it was made: it may be older than this process.
    age: Duration,
    head: u64,
}

impl Mark {
    fn age(&self, now: Instant) -> Duration {
        self.age.saturating_add(now.saturating_duration_since(self.noted))
    }
}

impl Backoff {
    /// State of a webhook that was failing before the restart, since the audit log ended at `head`.
    pub(super) fn resumed(now: Instant, age: Duration, head: u64) -> Self {
        Self { tries: 0, marks: VecDeque::from([Mark { noted: now, age: age.min(LIFE), head }]) }
    }

    pub(super) fn is_failing(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Records a failure while the audit log ends at `head`. Returns the pause; `chance` is a random number.
    pub(super) fn failed(&mut self, now: Instant, head: u64, how: FailureKind, chance: u32) -> Duration {
        if self.marks.back().is_none_or(|last| last.age(now) >= MARK_INTERVAL) {
            self.marks.push_back(Mark { noted: now, age: Duration::ZERO, head });
        }
        while self.marks.get(1).is_some_and(|next| next.age(now) >= LIFE) {
            self.marks.pop_front();
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.tries.min(16)).min(PAUSE_MAX);
        self.tries = self.tries.saturating_add(1);
        match how {
            FailureKind::Temporary => varied(pause, chance),
            FailureKind::RetryAfter(pause) => pause.clamp(PAUSE_MIN, RETRY_AFTER_MAX),
            FailureKind::Gone => varied(RETRY_AFTER_MAX, chance),
        }
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Number of the last entry that is given up.
    pub(super) fn stale(&self, now: Instant) -> u64 {
        let old = self.marks.iter().filter(|mark| mark.age(now) >= LIFE);
        old.map(|mark| mark.head).max().unwrap_or(0)
    }
}

/// A random pause from half to all of the given one.
fn varied(pause: Duration, chance: u32) -> Duration {
    pause.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn pauses(how: FailureKind, chance: u32, count: usize) -> Vec<u64> {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        (0..count).map(|_| backoff.failed(now, 1, how, chance).as_secs()).collect()
    }

    /// promise: W2
    #[test]
    fn pauses_grow_to_ten_minutes_and_differ() {
        assert_eq!(
            pauses(FailureKind::Temporary, u32::MAX, 12),
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
        );
        assert_eq!(pauses(FailureKind::Temporary, 0, 12)[9..], [256, 300, 300]);
        assert_eq!(*pauses(FailureKind::Temporary, 7, 1_000).last().unwrap(), 300);
        let mut backoff = Backoff::default();
        let now = Instant::now();
        for _ in 0..9 {
            backoff.failed(now, 1, FailureKind::Temporary, 0);
        }
        backoff.succeeded();
        assert!(!backoff.is_failing());
        assert_eq!(backoff.failed(now, 1, FailureKind::Temporary, u32::MAX), PAUSE_MIN);
    }

    #[test]
    fn retry_after_is_honoured_up_to_an_hour() {
        let pause = |seconds| pauses(FailureKind::RetryAfter(Duration::from_secs(seconds)), 0, 1)[0];
        assert_eq!([pause(0), pause(90), pause(3_600), pause(86_400)], [1, 90, 3_600, 3_600]);
        assert_eq!(pauses(FailureKind::Gone, 0, 3), [1_800; 3], "one that is gone is hardly bothered");
    }

    /// promise: W2
    #[test]
    fn entries_older_than_a_day_are_given_up_and_no_others() {
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        // An entry comes every minute, for two days.
        for minute in 0..2 * 24 * 60u32 {
            let now = begin + MINUTE * minute;
            backoff.failed(now, u64::from(minute), FailureKind::Temporary, 0);
            let stale = backoff.stale(now);
            let day_ago = u64::from(minute).checked_sub(24 * 60);
            match day_ago {
                None => assert_eq!(stale, 0),
                Some(day_ago) => assert!(stale <= day_ago && stale + 60 >= day_ago, "{minute}: {stale}"),
            }
            assert!(backoff.marks.len() <= 27, "{}", backoff.marks.len());
        }
        backoff.succeeded();
        assert_eq!(backoff.stale(begin + LIFE * 9), 0);
    }

    /// promise: W2
    #[test]
    fn a_restart_does_not_reset_the_age_of_entries() {
        let now = Instant::now();
        let mut backoff = Backoff::resumed(now, Duration::from_hours(23), 70);
        assert!(backoff.is_failing());
        assert_eq!(backoff.stale(now), 0);
        backoff.failed(now + MINUTE, 90, FailureKind::Temporary, 0);
        let later = now + Duration::from_hours(1);
        assert_eq!(backoff.stale(later), 70, "what has come since is younger");
        assert_eq!(backoff.stale(now + Duration::from_hours(25)), 90);
        // A clock that was set forward makes nothing older than it can be.
        assert_eq!(Backoff::resumed(now, Duration::MAX, 70).stale(now), 70);
    }
}
