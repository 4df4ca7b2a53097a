//! A time zone as data: its name, and its offsets from UTC for some years.
//!
//! The rules read no time zone database. The shell looks a name up once, when an operator gives it; from then on the
//! offsets belong to the window, so that a replay with another database gives the same result.

use forewarn_types::{OutOfRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::limits::{OFFSET_CHANGES_MAX, ZONE_NAME_BYTES_MAX};

/// A time zone with the changes of its offset. Before the first change and after the last, the offset stays as it is
/// there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTimeZone")]
pub struct TimeZone {
    name: String,
    offset_minutes: i16,
    changes: Vec<OffsetChange>,
}

/// A change of the offset from UTC, such as the begin or the end of daylight-saving time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetChange {
    /// Time of the change.
    pub at: Timestamp,
    /// Offset of local time from UTC from then on, in minutes.
    pub offset_minutes: i16,
}

/// The fields of a time zone before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedTimeZone {
    name: String,
    offset_minutes: i16,
    changes: Vec<OffsetChange>,
}

/// The maximum offset of local time from UTC: 14 hours.
const OFFSET_MINUTES_MAX: i16 = 14 * 60;

/// A span of time in which the offset does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetSpan {
    pub(crate) offset_minutes: i16,
    /// The time of the next change; `None` if there is none.
    pub(crate) until: Option<Timestamp>,
}

impl TimeZone {
    /// A time zone with the offset before the first change, and the changes in ascending order; `None` if the name, an
    /// offset or the number or order of the changes is invalid.
    #[must_use]
    pub fn new(name: &str, offset_minutes: i16, changes: Vec<OffsetChange>) -> Option<Self> {
        let offsets = changes.iter().map(|change| change.offset_minutes).chain([offset_minutes]);
        let is_valid = Self::is_name(name)
            && offsets.into_iter().all(is_offset)
            && changes.len() <= OFFSET_CHANGES_MAX
            && changes.is_sorted_by(|one, other| one.at < other.at);
        is_valid.then(|| Self { name: name.to_owned(), offset_minutes, changes })
    }

    /// Returns true if a text may be a name, such as `Europe/Berlin`: it has the form and a permitted length.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        text.len() <= ZONE_NAME_BYTES_MAX && Self::has_form_of_name(text)
    }

    /// Returns true if a text has the form of a name, however long.
    #[must_use]
    pub fn has_form_of_name(text: &str) -> bool {
        let is_part = |part: &str| {
            let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte));
            letters && !part.is_empty()
        };
        text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.split('/').all(is_part)
    }

    /// Its name in the time zone database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offset from UTC before the first change, in minutes.
    #[must_use]
    pub fn offset_minutes(&self) -> i16 {
        self.offset_minutes
    }

    /// The changes of the offset, in ascending order.
    #[must_use]
    pub fn changes(&self) -> &[OffsetChange] {
        &self.changes
    }

    /// The span of constant offset around a time.
    pub(crate) fn span_at(&self, at: Timestamp) -> OffsetSpan {
        let next = self.changes.partition_point(|change| change.at <= at);
        let before = next.checked_sub(1).and_then(|last| self.changes.get(last));
        OffsetSpan {
            offset_minutes: before.map_or(self.offset_minutes, |change| change.offset_minutes),
            until: self.changes.get(next).map(|change| change.at),
        }
    }
}

pub(crate) const fn is_offset(minutes: i16) -> bool {
    minutes.unsigned_abs() <= OFFSET_MINUTES_MAX.unsigned_abs()
}

impl TryFrom<UncheckedTimeZone> for TimeZone {
    type Error = OutOfRange;

    fn try_from(zone: UncheckedTimeZone) -> Result<Self, OutOfRange> {
        let UncheckedTimeZone { name, offset_minutes, changes } = zone;
        Self::new(&name, offset_minutes, changes)
            .ok_or(OutOfRange("a time zone has a name, and ascending changes of at most 14 hours from UTC"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at: i64, offset_minutes: i16) -> OffsetChange {
        OffsetChange { at: Timestamp::from_millis(at), offset_minutes }
    }

    #[test]
    fn an_offset_is_valid_from_its_change_on() {
        let zone = TimeZone::new("Europe/Berlin", 60, vec![change(100, 120), change(200, 60)]).unwrap();
        assert_eq!((zone.name(), zone.offset_minutes(), zone.changes().len()), ("Europe/Berlin", 60, 2));
        let spans = [(0, 60, Some(100)), (99, 60, Some(100)), (100, 120, Some(200)), (200, 60, None)];
        for (at, offset_minutes, until) in spans {
            let until = until.map(Timestamp::from_millis);
            assert_eq!(
                zone.span_at(Timestamp::from_millis(at)),
                OffsetSpan { offset_minutes, until },
                "{at}"
            );
        }
    }

    #[test]
    fn invalid_time_zones_are_rejected() {
        for name in ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "CET"] {
            assert!(TimeZone::new(name, 0, vec![]).is_some(), "{name}");
        }
        let long = "x".repeat(ZONE_NAME_BYTES_MAX + 1);
        for name in ["", "/etc", "Europe/", "../passwd", "Europe//Berlin", "+01:00", &long] {
            assert_eq!(TimeZone::new(name, 0, vec![]), None, "{name}");
        }
        assert_eq!(TimeZone::new("CET", 841, vec![]), None);
        assert_eq!(TimeZone::new("CET", 0, vec![change(5, 841)]), None);
        assert_eq!(TimeZone::new("CET", 0, vec![change(5, 0), change(5, 60)]), None);
        let many = (0..).take(OFFSET_CHANGES_MAX + 1).map(|at| change(at, 0)).collect();
        assert_eq!(TimeZone::new("CET", 0, many), None);
    }
}
