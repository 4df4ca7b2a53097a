//! How long to wait before a webhook is tried again, and what nobody waits for any longer.
//!
//! Pauses double, up to ten minutes, and differ by chance, so that webhooks which failed together do not come back together.
//! What was there for a day while nothing was taken is given up. How old an entry is, is known by marks: where the trail
//! ended at some moments. They count on a clock that only grows, and are as good as the hour.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// The longest pause that a webhook may wish for; and that of one which says that it is gone for good.
const WISH_MAX: Duration = Duration::from_hours(1);

/// What was there for so long while nothing was taken, is given up.
const LIFE: Duration = Duration::from_hours(24);

/// How far marks lie apart.
const MARK_EVERY: Duration = Duration::from_hours(1);

/// How somebody failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// For now.
    Passing,
    /// For so long, as it says.
    Busy(Duration),
    /// For good, as it says.
    Gone,
}

/// How long somebody has been failing, and how long to wait.
#[derive(Debug, Default)]
pub(super) struct Patience {
    tries: u32,
    /// Oldest first; none, while all is well.
    marks: VecDeque<Mark>,
}

/// Where the trail ended at a moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    noted: Instant,
    /// How long ago the moment was when it was noted: it may have been before this process.
    age: Duration,
    head: u64,
}

impl Mark {
    fn age(&self, now: Instant) -> Duration {
        self.age.saturating_add(now.saturating_duration_since(self.noted))
    }
}

impl Patience {
    /// It has been failing for so long already, since the trail ended there.
    pub(super) fn resumed(now: Instant, age: Duration, head: u64) -> Self {
        Self { tries: 0, marks: VecDeque::from([Mark { noted: now, age: age.min(LIFE), head }]) }
    }

    pub(super) fn is_failing(&self) -> bool {
        !self.marks.is_empty()
    }

    /// It has failed, while the trail ends there. Says how long to wait; `chance` is any number.
    pub(super) fn failed(&mut self, now: Instant, head: u64, how: Failure, chance: u32) -> Duration {
        if self.marks.back().is_none_or(|last| last.age(now) >= MARK_EVERY) {
            self.marks.push_back(Mark { noted: now, age: Duration::ZERO, head });
        }
        while self.marks.get(1).is_some_and(|next| next.age(now) >= LIFE) {
            self.marks.pop_front();
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.tries.min(16)).min(PAUSE_MAX);
        self.tries = self.tries.saturating_add(1);
        match how {
            Failure::Passing => varied(pause, chance),
            Failure::Busy(wish) => wish.clamp(PAUSE_MIN, WISH_MAX),
            Failure::Gone => varied(WISH_MAX, chance),
        }
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The number up to which nobody waits any longer.
    pub(super) fn stale(&self, now: Instant) -> u64 {
        let old = self.marks.iter().filter(|mark| mark.age(now) >= LIFE);
        old.map(|mark| mark.head).max().unwrap_or(0)
    }
}

/// From half of it to all of it.
fn varied(pause: Duration, chance: u32) -> Duration {
    pause.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn pauses(how: Failure, chance: u32, count: usize) -> Vec<u64> {
        let (mut patience, now) = (Patience::default(), Instant::now());
        (0..count).map(|_| patience.failed(now, 1, how, chance).as_secs()).collect()
    }

    #[test]
    fn pauses_grow_to_ten_minutes_and_differ() {
        assert_eq!(pauses(Failure::Passing, u32::MAX, 12), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(pauses(Failure::Passing, 0, 12)[9..], [256, 300, 300]);
        assert_eq!(*pauses(Failure::Passing, 7, 1_000).last().unwrap(), 300);
        let mut patience = Patience::default();
        let now = Instant::now();
        for _ in 0..9 {
            patience.failed(now, 1, Failure::Passing, 0);
        }
        patience.succeeded();
        assert!(!patience.is_failing());
        assert_eq!(patience.failed(now, 1, Failure::Passing, u32::MAX), PAUSE_MIN);
    }

    #[test]
    fn a_wish_is_honoured_within_an_hour() {
        let wish = |seconds| pauses(Failure::Busy(Duration::from_secs(seconds)), 0, 1)[0];
        assert_eq!([wish(0), wish(90), wish(3_600), wish(86_400)], [1, 90, 3_600, 3_600]);
        assert_eq!(pauses(Failure::Gone, 0, 3), [1_800; 3], "one that is gone is hardly bothered");
    }

    #[test]
    fn what_was_there_for_a_day_is_given_up_and_nothing_younger() {
        let begin = Instant::now();
        let mut patience = Patience::default();
        // An entry comes every minute, for two days.
        for minute in 0..2 * 24 * 60u32 {
            let now = begin + MINUTE * minute;
            patience.failed(now, u64::from(minute), Failure::Passing, 0);
            let stale = patience.stale(now);
            let day_ago = u64::from(minute).checked_sub(24 * 60);
            match day_ago {
                None => assert_eq!(stale, 0),
                Some(day_ago) => assert!(stale <= day_ago && stale + 60 >= day_ago, "{minute}: {stale}"),
            }
            assert!(patience.marks.len() <= 27, "{}", patience.marks.len());
        }
        patience.succeeded();
        assert_eq!(patience.stale(begin + LIFE * 9), 0);
    }

    #[test]
    fn a_restart_does_not_begin_a_new_day() {
        let now = Instant::now();
        let mut patience = Patience::resumed(now, Duration::from_hours(23), 70);
        assert!(patience.is_failing());
        assert_eq!(patience.stale(now), 0);
        patience.failed(now + MINUTE, 90, Failure::Passing, 0);
        let later = now + Duration::from_hours(1);
        assert_eq!(patience.stale(later), 70, "what has come since is younger");
        assert_eq!(patience.stale(now + Duration::from_hours(25)), 90);
        // A clock that was set forward makes nothing older than it can be.
        assert_eq!(Patience::resumed(now, Duration::MAX, 70).stale(now), 70);
    }
}
