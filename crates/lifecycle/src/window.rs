//! Windows: the hours of the week in which groups of a rollout may start.
//!
//! A window is daily: on some weekdays, from one minute of the day to another, at a fixed offset from UTC or in a time
//! zone. A window that ends at or before its start ends on the next day; its weekday is that of its start.
//!
//! A window in a time zone is open while a local clock shows a time in it. So in an hour that occurs twice, it is open
//! twice; a window that begins in an hour that never occurs opens at the end of that hour; and a window that lies in
//! such an hour does not open on that day.

use std::time::Duration;

use forewarn_types::{OutOfRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::time_zone::{OffsetSpan, TimeZone, is_offset};

/// Hours on some days of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedWindow")]
pub struct Window {
    days: Weekdays,
    from_minute: u16,
    to_minute: u16,
    offset_minutes: i16,
    /// The zone of its local time; `None` for the offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<Box<TimeZone>>,
}

/// Days of the week; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8")]
pub struct Weekdays(u8);

/// The fields of a window before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedWindow {
    days: Weekdays,
    from_minute: u16,
    to_minute: u16,
    offset_minutes: i16,
    #[serde(default)]
    zone: Option<TimeZone>,
}

/// Minutes in a day.
pub(crate) const DAY_MINUTES: u16 = 24 * 60;
pub(crate) const MINUTE_MILLIS: i64 = 60_000;
const DAY_MILLIS: i64 = DAY_MINUTES as i64 * MINUTE_MILLIS;

/// 1970-01-01 was a Thursday; days are counted from Monday.
pub(crate) const FIRST_WEEKDAY: i64 = 3;

impl Weekdays {
    /// Every day.
    pub const ALL: Self = Self(0b111_1111);

    /// The days whose bits are set: Monday is the lowest. At least one, and no eighth.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 || bits > Self::ALL.0 { None } else { Some(Self(bits)) }
    }

    /// A bit for each day; Monday is the lowest.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns true if the day is included; Monday is 0.
    #[must_use]
    pub const fn contains(self, day: u8) -> bool {
        day < 7 && self.0 & (1 << day) != 0
    }
}

impl Window {
    /// A window on these days from one minute of the day to another, with an offset from UTC in minutes; `None` if a
    /// minute or the offset is out of range. With both minutes the same it is open all day.
    ///
    /// ```
    /// use forewarn_lifecycle::{Timestamp, Weekdays, Window};
    /// // Nights, an hour ahead of UTC: open at 22:30 UTC.
    /// let nights = Window::new(Weekdays::ALL, 22 * 60, 6 * 60, 60).unwrap();
    /// assert!(nights.is_open(Timestamp::from_millis((22 * 60 + 30) * 60_000)));
    /// assert_eq!(Window::new(Weekdays::ALL, 1440, 0, 0), None);
    /// ```
    #[must_use]
    pub const fn new(days: Weekdays, from_minute: u16, to_minute: u16, offset_minutes: i16) -> Option<Self> {
        let minutes = from_minute < DAY_MINUTES && to_minute < DAY_MINUTES;
        if minutes && is_offset(offset_minutes) {
            Some(Self { days, from_minute, to_minute, offset_minutes, zone: None })
        } else {
            None
        }
    }

    /// A window on these days from one minute of the day to another, in a time zone; `None` if a minute is out of
    /// range.
    #[must_use]
    pub fn in_zone(days: Weekdays, from_minute: u16, to_minute: u16, zone: TimeZone) -> Option<Self> {
        let window = Self::new(days, from_minute, to_minute, 0)?;
        Some(Self { zone: Some(Box::new(zone)), ..window })
    }

    /// The days on which it opens.
    #[must_use]
    pub const fn days(&self) -> Weekdays {
        self.days
    }

    /// The minute of the day at which it opens.
    #[must_use]
    pub const fn from_minute(&self) -> u16 {
        self.from_minute
    }

    /// The minute of the day, or of the next day, at which it closes.
    #[must_use]
    pub const fn to_minute(&self) -> u16 {
        self.to_minute
    }

    /// Offset of its local time from UTC, in minutes; zero for a window in a time zone.
    #[must_use]
    pub const fn offset_minutes(&self) -> i16 {
        self.offset_minutes
    }

    /// The zone of its local time; `None` for a fixed offset.
    #[must_use]
    pub fn zone(&self) -> Option<&TimeZone> {
        self.zone.as_deref()
    }

    /// Returns true if it is open at that time.
    #[must_use]
    pub fn is_open(&self, at: Timestamp) -> bool {
        let span = self.span_at(at);
        self.next_open_at_offset(span.offset_minutes, at) == Some(at)
    }

    /// The first time from then on at which it is open.
    #[must_use]
    pub fn next_open(&self, at: Timestamp) -> Timestamp {
        let mut from = at;
        loop {
            let span = self.span_at(from);
            let opens = self.next_open_at_offset(span.offset_minutes, from);
            match (opens, span.until) {
                (Some(opens), Some(until)) if opens >= until => from = until,
                (None, Some(until)) => from = until,
                (Some(opens), Some(_) | None) => return opens,
                (None, None) => return at,
            }
        }
    }

    /// The span of constant offset around a time.
    pub(crate) fn span_at(&self, at: Timestamp) -> OffsetSpan {
        let fixed = OffsetSpan { offset_minutes: self.offset_minutes, until: None };
        self.zone.as_ref().map_or(fixed, |zone| zone.span_at(at))
    }

    /// The first time from then on at which it is open, if local time has that offset.
    fn next_open_at_offset(&self, offset_minutes: i16, at: Timestamp) -> Option<Timestamp> {
        let ahead = i64::from(offset_minutes) * MINUTE_MILLIS;
        let local = at.millis() + ahead;
        let today = local.div_euclid(DAY_MILLIS);
        // A window that opened yesterday may still be open; each opens within a week.
        for day in today - 1..=today + 7 {
            let weekday = (day + FIRST_WEEKDAY).rem_euclid(7);
            let opens = day * DAY_MILLIS + i64::from(self.from_minute) * MINUTE_MILLIS;
            let is_one = u8::try_from(weekday).is_ok_and(|weekday| self.days.contains(weekday));
            if is_one && local < opens + self.length_millis() {
                return Some(Timestamp::from_millis(local.max(opens) - ahead));
            }
        }
        None
    }

    fn length_millis(&self) -> i64 {
        i64::from(self.length_minutes()) * MINUTE_MILLIS
    }

    /// The length of the hours, if no clock is changed meanwhile.
    pub(crate) fn length_minutes(&self) -> u16 {
        let overnight = self.to_minute <= self.from_minute;
        self.to_minute + if overnight { DAY_MINUTES } else { 0 } - self.from_minute
    }
}

impl TryFrom<u8> for Weekdays {
    type Error = OutOfRange;

    fn try_from(bits: u8) -> Result<Self, OutOfRange> {
        Self::from_bits(bits).ok_or(OutOfRange("weekdays are 1 to 127, a bit for each day"))
    }
}

impl TryFrom<UncheckedWindow> for Window {
    type Error = OutOfRange;

    fn try_from(window: UncheckedWindow) -> Result<Self, OutOfRange> {
        let UncheckedWindow { days, from_minute, to_minute, offset_minutes, zone } = window;
        let wrong = OutOfRange("a window begins and ends within a day, at most 14 hours from UTC");
        let window = Self::new(days, from_minute, to_minute, offset_minutes).ok_or(wrong)?;
        Ok(Self { zone: zone.map(Box::new), ..window })
    }
}

/// The first time from then on at which one of the windows is open; at once, if there are none.
pub(crate) fn next_open(windows: &[Window], at: Timestamp) -> Timestamp {
    windows.iter().map(|window| window.next_open(at)).min().unwrap_or(at)
}

/// The earliest time to announce a group so that its notice of that length ends in a window.
pub(crate) fn next_announcement(windows: &[Window], now: Timestamp, notice: Duration) -> Timestamp {
    let not_before = now.plus(notice).rounded_up();
    let opens = next_open(windows, not_before);
    if opens == not_before { now } else { announcement(now, opens, notice) }
}

/// The time of an announcement whose notice of that length ends when a window opens.
pub(crate) fn announcement(now: Timestamp, opens: Timestamp, notice: Duration) -> Timestamp {
    now.plus(opens.since(now).saturating_sub(notice))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Thursday, 2026-01-01T00:00:00Z, and minutes after it.
    pub(crate) fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + minutes * MINUTE_MILLIS)
    }

    pub(crate) fn window(days: u8, from: u16, to: u16, offset: i16) -> Window {
        Window::new(Weekdays::from_bits(days).unwrap(), from, to, offset).unwrap()
    }

    const THURSDAY: u8 = 1 << 3;

    #[test]
    fn a_window_opens_at_its_first_minute_and_is_closed_at_its_last() {
        let morning = window(THURSDAY, 60, 120, 0);
        for (minute, open) in [(59, false), (60, true), (119, true), (120, false)] {
            assert_eq!(morning.is_open(at(minute)), open, "{minute}");
        }
        assert_eq!(morning.next_open(at(0)), at(60));
        assert_eq!(morning.next_open(at(120)), at(60 + 7 * 1440));
        assert!(!morning.is_open(Timestamp::from_millis(at(120).millis())));
        assert!(morning.is_open(Timestamp::from_millis(at(120).millis() - 1)));
    }

    #[test]
    fn a_window_past_midnight_belongs_to_the_day_of_its_start() {
        let night = window(THURSDAY, 22 * 60, 6 * 60, 0);
        assert!(!night.is_open(at(60)), "that is Wednesday's night");
        assert_eq!(night.next_open(at(60)), at(22 * 60));
        assert!(night.is_open(at(1440 + 5 * 60)));
        assert!(!night.is_open(at(1440 + 6 * 60)));
    }

    #[test]
    fn the_offset_shifts_a_window() {
        // 22:00 to 06:00 an hour ahead of UTC is 21:00 to 05:00.
        let night = window(THURSDAY, 22 * 60, 6 * 60, 60);
        assert_eq!(night.next_open(at(0)), at(21 * 60));
        // Where it is still Wednesday, Thursday comes later.
        let west = window(THURSDAY, 0, 60, -8 * 60);
        assert_eq!(west.next_open(at(0)), at(8 * 60));
    }

    #[test]
    fn a_window_that_ends_when_it_begins_is_open_all_day() {
        let all = window(0b111_1111, 600, 600, 0);
        for minute in [0, 599, 600, 601, 1439, 5000] {
            assert!(all.is_open(at(minute)), "{minute}");
        }
    }

    #[test]
    fn invalid_windows_are_rejected() {
        assert_eq!(Weekdays::from_bits(0), None);
        assert_eq!(Weekdays::from_bits(128), None);
        assert_eq!(Window::new(Weekdays::ALL, 0, 1440, 0), None);
        assert_eq!(Window::new(Weekdays::ALL, 0, 60, 841), None);
        assert!(Window::new(Weekdays::ALL, 0, 60, -840).is_some());
        assert!(!Weekdays::ALL.contains(7));
        assert_eq!(Weekdays::try_from(127), Ok(Weekdays::ALL));
        assert!(Weekdays::try_from(0).is_err());
        let read = |to_minute| {
            Window::try_from(UncheckedWindow {
                days: Weekdays::ALL,
                from_minute: 0,
                to_minute,
                offset_minutes: 0,
                zone: None,
            })
        };
        assert_eq!(read(60), Ok(window(127, 0, 60, 0)));
        assert!(read(1440).is_err());
    }

    #[test]
    fn an_announcement_has_its_notice_end_in_a_window() {
        let notice = Duration::from_mins(15);
        let morning = [window(THURSDAY, 60, 120, 0)];
        assert_eq!(next_announcement(&morning, at(0), notice), at(45));
        assert_eq!(next_announcement(&morning, at(50), notice), at(50));
        assert_eq!(next_announcement(&morning, at(104), notice), at(104));
        assert_eq!(next_announcement(&morning, at(105), notice), at(45 + 7 * 1440));
        assert_eq!(next_announcement(&[], at(105), notice), at(105));
        let late = Timestamp::from_millis(at(0).millis() + 250);
        assert_eq!(next_announcement(&morning, late, notice), at(45));
        let two = [morning[0].clone(), window(THURSDAY, 200, 210, 0)];
        assert_eq!(next_announcement(&two, at(120), notice), at(185));
    }
}
