//! Points in time on the two clocks.
//!
//! Time is always an argument. There are two clocks, because each fails in its own way: the *wall* clock has the date
//! and may be stepped; the *steady* clock only grows and has no date. An event starts when its notice is over on both,
//! so a step of the wall clock can make it late, never early.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::out_of_range::OutOfRange;

/// A point on the wall clock, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64")]
pub struct Timestamp(i64);

/// A point on a clock that only grows, in milliseconds since some start. It survives restarts of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Steady(u64);

/// A reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Now {
    /// The date and time.
    pub wall: Timestamp,
    /// The clock that is never stepped.
    pub steady: Steady,
}

/// The last second that a four-digit year can write: 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;
const LAST_MILLI: i64 = LAST_SECOND * 1_000;

impl Timestamp {
    /// The point that many milliseconds after the beginning of 1970, kept within the years 1970 to 9999.
    ///
    /// ```
    /// use forewarn_types::Timestamp;
    /// assert_eq!(Timestamp::from_millis(1_500).seconds(), 1);
    /// assert_eq!(Timestamp::from_millis(-1).millis(), 0);
    /// ```
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        match millis {
            ..0 => Self(0),
            0..=LAST_MILLI => Self(millis),
            _ => Self(LAST_MILLI),
        }
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the beginning of 1970.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0 / 1_000
    }

    /// This point, later by `span`.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(span).cast_signed()))
    }

    /// The first whole second at or after this point.
    ///
    /// ```
    /// use forewarn_types::Timestamp;
    /// assert_eq!(Timestamp::from_millis(2_001).rounded_up().seconds(), 3);
    /// assert_eq!(Timestamp::from_millis(2_000).rounded_up().seconds(), 2);
    /// ```
    #[must_use]
    pub fn rounded_up(self) -> Self {
        Self::from_millis((self.0 + 999) / 1_000 * 1_000)
    }

    /// The time from `earlier` to this point; zero if this point is the earlier one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl TryFrom<i64> for Timestamp {
    type Error = OutOfRange;

    /// That many milliseconds after the beginning of 1970, if the year is 1970 to 9999.
    fn try_from(millis: i64) -> Result<Self, OutOfRange> {
        let timestamp = Self::from_millis(millis);
        if timestamp.0 == millis {
            Ok(timestamp)
        } else {
            Err(OutOfRange("a time is in the years 1970 to 9999"))
        }
    }
}

impl Steady {
    /// The start of the clock: anything due then is due now.
    pub const START: Self = Self(0);

    /// The point that many milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the start.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// This point, later by `span`.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(whole_millis(span)))
    }

    /// This point, earlier by `span`, but not before the start.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(whole_millis(span)))
    }

    /// The time from `earlier` to this point; zero if this point is the earlier one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Now {
    /// Both clocks at the same reading, as on a virtual clock.
    #[must_use]
    pub fn at_millis(millis: i64) -> Self {
        let wall = Timestamp::from_millis(millis);
        Self { wall, steady: Steady(wall.0.unsigned_abs()) }
    }

    /// This moment, later by `span` on both clocks.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self { wall: self.wall.plus(span), steady: self.steady.plus(span) }
    }
}

/// The length of a span in milliseconds, rounded up: rounding never shortens a notice.
fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_stays_within_what_a_document_can_show() {
        assert_eq!(Timestamp::from_millis(i64::MAX).seconds(), LAST_SECOND);
        assert_eq!(Timestamp::from_millis(i64::MAX).plus(Duration::MAX).seconds(), LAST_SECOND);
        assert_eq!(Timestamp::from_millis(i64::MAX).rounded_up().seconds(), LAST_SECOND);
        assert_eq!(Timestamp::from_millis(i64::MIN).millis(), 0);
    }

    #[test]
    fn a_timestamp_reads_as_it_was_written() {
        for millis in [0, 1, LAST_MILLI] {
            let read: Timestamp = serde_json::from_str(&millis.to_string()).unwrap();
            assert_eq!((read.millis(), serde_json::to_string(&read).unwrap()), (millis, millis.to_string()));
        }
        for wrong in [-1, i64::MIN, LAST_MILLI + 1, i64::MAX] {
            assert!(serde_json::from_str::<Timestamp>(&wrong.to_string()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounding_up_never_goes_back() {
        for millis in [0, 1, 999, 1_000, 1_001, 1_999] {
            let rounded = Timestamp::from_millis(millis).rounded_up();
            assert!(
                rounded.millis() >= millis
                    && rounded.millis() - millis < 1_000
                    && rounded.millis() % 1_000 == 0
            );
        }
    }

    #[test]
    fn a_part_of_a_millisecond_counts_as_one() {
        assert_eq!(Steady::START.plus(Duration::from_micros(1)).millis(), 1);
        assert_eq!(Steady::START.plus(Duration::from_millis(7)).millis(), 7);
        assert_eq!(Steady::from_millis(5).plus(Duration::MAX).millis(), i64::MAX.unsigned_abs() + 5);
    }

    #[test]
    fn differences_do_not_wrap() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(9).since(Timestamp::from_millis(5)), Duration::from_millis(4));
        assert_eq!(Steady::from_millis(5).since(Steady::from_millis(9)), Duration::ZERO);
        assert_eq!(Steady::from_millis(9).since(Steady::from_millis(5)), Duration::from_millis(4));
        assert_eq!(Steady::from_millis(9).minus(Duration::from_millis(4)), Steady::from_millis(5));
        assert_eq!(Steady::from_millis(9).minus(Duration::MAX), Steady::START);
    }
}
