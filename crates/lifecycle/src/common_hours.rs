//! The hours that several lists of windows have in common.
//!
//! While no offset changes, windows repeat every week, so a week of minutes shows every common hour. Where windows have
//! a time zone, the search continues after each change of an offset, for somewhat more than a year.

use std::time::Duration;

use forewarn_types::Timestamp;

use crate::window::{DAY_MINUTES, FIRST_WEEKDAY, MINUTE_MILLIS, Window};

/// Time ahead in which a common hour is searched.
pub(crate) const HORIZON: Duration = Duration::from_hours(400 * 24);

const WEEK_MINUTES: usize = 7 * DAY_MINUTES as usize;
const WEEK: i64 = 7 * DAY_MINUTES as i64;
const WORDS: usize = WEEK_MINUTES.div_ceil(64);

/// The minutes of a week in UTC, from Monday on, each open or closed.
struct Week([u64; WORDS]);

/// Returns true if one of the windows is open at that time, or if there are none.
pub(crate) fn is_open(windows: &[Window], at: Timestamp) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.is_open(at))
}

/// The first time from then on at which a window of each list is open; `None` if there is none up to the horizon. An
/// empty list is always open.
pub(crate) fn next_common(lists: &[&[Window]], at: Timestamp) -> Option<Timestamp> {
    if lists.iter().all(|windows| is_open(windows, at)) {
        return Some(at);
    }
    let horizon = at.plus(HORIZON);
    let mut from = at;
    loop {
        let windows = lists.iter().copied().flatten();
        let until = windows.filter_map(|window| window.span_at(from).until).min();
        let mut week = Week([u64::MAX; WORDS]);
        lists.iter().filter(|list| !list.is_empty()).for_each(|list| week.intersect(&Week::of(list, from)));
        let opens = week.next_open(from).filter(|opens| until.is_none_or(|until| *opens < until));
        if opens.is_some() {
            return opens;
        }
        from = until.filter(|until| *until < horizon)?;
    }
}

impl Week {
    /// The minutes in which one of the windows is open, with the offsets of that time.
    fn of(windows: &[Window], at: Timestamp) -> Self {
        let mut week = Self([0; WORDS]);
        for window in windows {
            let offset = i64::from(window.span_at(at).offset_minutes);
            for day in (0..7).filter(|day| window.days().contains(*day)) {
                let opens =
                    i64::from(day) * i64::from(DAY_MINUTES) + i64::from(window.from_minute()) - offset;
                week.open(opens.rem_euclid(WEEK), window.length_minutes());
            }
        }
        week
    }

    fn open(&mut self, from: i64, minutes: u16) {
        let from = usize::try_from(from).unwrap_or(0);
        for minute in from..from + usize::from(minutes) {
            let minute = minute % WEEK_MINUTES;
            self.0[minute / 64] |= 1 << (minute % 64);
        }
    }

    fn intersect(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    fn is_open(&self, minute: usize) -> bool {
        self.0[minute / 64] & (1 << (minute % 64)) != 0
    }

    /// The first time from then on in an open minute; `None` if no minute is open.
    fn next_open(&self, at: Timestamp) -> Option<Timestamp> {
        let first = at.millis().div_euclid(MINUTE_MILLIS);
        let of_week = (first + FIRST_WEEKDAY * i64::from(DAY_MINUTES)).rem_euclid(WEEK);
        let of_week = usize::try_from(of_week).ok()?;
        let minutes = (0..WEEK_MINUTES).zip(first..);
        let mut open = minutes.filter(|(after, _)| self.is_open((of_week + after) % WEEK_MINUTES));
        open.next().map(|(_, minute)| Timestamp::from_millis((minute * MINUTE_MILLIS).max(at.millis())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_zone::{OffsetChange, TimeZone};
    use crate::window::Weekdays;
    use crate::window::tests::{at, window};

    const DAY: i64 = 1440;

    #[test]
    fn lists_meet_where_a_window_of_each_is_open() {
        let nights = [window(127, 22 * 60, 6 * 60, 0)];
        let early = [window(127, 5 * 60, 8 * 60, 0)];
        let sunday = [window(1 << 6, 0, 0, 0)];
        assert_eq!(next_common(&[], at(3)), Some(at(3)));
        assert_eq!(next_common(&[&[], &nights], at(600)), Some(at(22 * 60)));
        assert_eq!(next_common(&[&nights, &early], at(0)), Some(at(300)));
        assert_eq!(next_common(&[&nights, &early], at(330)), Some(at(330)));
        assert_eq!(next_common(&[&nights, &early], at(360)), Some(at(DAY + 300)));
        assert_eq!(next_common(&[&nights, &early, &sunday], at(0)), Some(at(3 * DAY + 300)));
        let within = Timestamp::from_millis(at(310).millis() + 7);
        assert_eq!(next_common(&[&nights, &early], within), Some(within));
        let noon = [window(127, 720, 780, 0)];
        assert_eq!(next_common(&[&nights, &noon], at(0)), None);
        let both = [noon[0].clone(), early[0].clone()];
        assert_eq!(next_common(&[&nights, &both], at(400)), Some(at(DAY + 300)));
    }

    #[test]
    fn lists_of_one_window_meet_where_it_opens() {
        for (days, from, to, offset) in
            [(127, 0, 0, 0), (9, 1300, 80, 330), (64, 600, 700, -840), (1, 0, 1, 840)]
        {
            let one = [window(days, from, to, offset)];
            for minute in (0..8 * DAY).step_by(7) {
                let found = next_common(&[&one, &one], at(minute));
                assert_eq!(found, Some(one[0].next_open(at(minute))), "{one:?} {minute}");
            }
        }
    }

    #[test]
    fn windows_that_meet_in_summer_only_are_found_in_winter() {
        let summer = OffsetChange { at: at(87 * DAY), offset_minutes: 60 };
        let winter = OffsetChange { at: at(297 * DAY), offset_minutes: 0 };
        let zone = TimeZone::new("Europe/London", 0, vec![summer, winter]).unwrap();
        let local = [Window::in_zone(Weekdays::ALL, 600, 660, zone).unwrap()];
        let fixed = [window(127, 540, 600, 0)];
        assert_eq!(next_common(&[&local, &fixed], at(0)), Some(at(87 * DAY + 540)));
        assert_eq!(next_common(&[&local, &fixed], at(296 * DAY + 600)), None);
    }
}
