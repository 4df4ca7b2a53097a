//! Percentages.

use forewarn_types::OutOfRange;
use serde::{Deserialize, Serialize};

/// A percentage from 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8")]
pub struct Percent(u8);

impl Percent {
    /// A percentage; `None` unless it is 1 to 100.
    #[must_use]
    pub const fn new(percent: u8) -> Option<Self> {
        if percent == 0 || percent > 100 { None } else { Some(Self(percent)) }
    }

    /// The number of percent.
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.0
    }

    /// That share of a number of machines, rounded down, but at least one: otherwise a small tenant could never be
    /// worked on.
    ///
    /// ```
    /// use forewarn_lifecycle::Percent;
    /// let quarter = Percent::new(25).unwrap();
    /// assert_eq!((quarter.of(11), quarter.of(3), quarter.of(0)), (2, 1, 1));
    /// ```
    #[must_use]
    pub fn of(self, machines: usize) -> usize {
        (machines * usize::from(self.0) / 100).max(1)
    }

    /// That share of a number of machines, rounded up.
    ///
    /// ```
    /// use forewarn_lifecycle::Percent;
    /// let fifth = Percent::new(20).unwrap();
    /// assert_eq!((fifth.of_rounded_up(10), fifth.of_rounded_up(11), fifth.of_rounded_up(0)), (2, 3, 0));
    /// ```
    #[must_use]
    pub fn of_rounded_up(self, machines: usize) -> usize {
        (machines * usize::from(self.0)).div_ceil(100)
    }
}

impl TryFrom<u8> for Percent {
    type Error = OutOfRange;

    fn try_from(percent: u8) -> Result<Self, OutOfRange> {
        Self::new(percent).ok_or(OutOfRange("a percentage is 1 to 100"))
    }
}
