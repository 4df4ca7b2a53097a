//! Windows in time zones, compared with the time zone library.

use forewarn_lifecycle::{Weekdays, Window};

use super::*;

const PLACES: [&str; 12] = [
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Pacific/Kiritimati",
    "Pacific/Chatham",
];

/// Returns true if a local clock of the library shows a time in the window.
fn is_open_locally(window: &Window, zone: &tz::TimeZone, at: jiff::Timestamp) -> bool {
    let local = at.to_zoned(zone.clone()).datetime();
    let minute = u16::try_from(local.hour()).unwrap() * 60 + u16::try_from(local.minute()).unwrap();
    let today = u8::try_from(local.weekday().to_monday_zero_offset()).unwrap();
    let yesterday = (today + 6) % 7;
    let (from, to, days) = (window.from_minute(), window.to_minute(), window.days());
    if from < to {
        return days.contains(today) && from <= minute && minute < to;
    }
    (days.contains(today) && from <= minute) || (days.contains(yesterday) && minute < to)
}

#[test]
fn a_window_in_a_zone_is_open_while_a_local_clock_shows_a_time_in_it() {
    let hours = [(22, 0, 4, 0, 0b110_0000), (2, 15, 2, 45, 127), (1, 30, 3, 0, 127), (0, 0, 0, 0, 0b1_0000)];
    for place in PLACES {
        let library = tz::db().get(place).unwrap();
        let zone = find_time_zone(place).unwrap();
        assert_eq!(zone.name(), place);
        for (from, from_minutes, to, to_minutes, days) in hours {
            let days = Weekdays::from_bits(days).unwrap();
            let window =
                Window::in_zone(days, from * 60 + from_minutes, to * 60 + to_minutes, zone.clone()).unwrap();
            // Every change of the next years, and the days around it; and a quarter of an hour of every other day.
            let start = jiff::Timestamp::from_second(1_767_225_600).unwrap();
            let changes = library.following(start).take(8).map(|change| change.timestamp().as_second());
            let near = changes.flat_map(|at| (at - 90_000..at + 90_000).step_by(300));
            let far = (0..2_000).map(|step| 1_767_225_600 + step * (86_400 + 900));
            for second in near.chain(far) {
                let at = Timestamp::from_millis(second * 1_000);
                let expected =
                    is_open_locally(&window, &library, jiff::Timestamp::from_second(second).unwrap());
                assert_eq!(window.is_open(at), expected, "{place} {from}:{from_minutes} {second}");
            }
        }
    }
}

#[test]
fn the_next_opening_is_the_first_open_minute() {
    for place in ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"] {
        let zone = find_time_zone(place).unwrap();
        let changes: Vec<_> = zone.changes().iter().skip(4).take(4).map(|change| change.at).collect();
        for (from, to) in [(135, 165), (150, 240), (1320, 120)] {
            let window = Window::in_zone(Weekdays::ALL, from, to, zone.clone()).unwrap();
            for change in &changes {
                for start in (-2_000..500).step_by(83) {
                    let at = |minutes: i64| Timestamp::from_millis(change.millis() + minutes * 60_000);
                    let first = (start..).map(at).find(|at| window.is_open(*at)).unwrap();
                    assert_eq!(window.next_open(at(start)), first, "{place} {from} {start}");
                }
            }
        }
    }
}

/// In Berlin, 02:00 to 03:00 does not occur on 2026-03-29 and occurs twice on 2026-10-25.
#[test]
fn hours_that_occur_never_or_twice_are_explicit() {
    let zone = find_time_zone("europe/berlin").unwrap();
    let window = |from, to| Window::in_zone(Weekdays::ALL, from, to, zone.clone()).unwrap();
    let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    let spring = at("2026-03-29T00:00:00Z");
    assert_eq!(
        window(150, 240).next_open(spring),
        at("2026-03-29T01:00:00Z"),
        "begins at the end of the gap"
    );
    assert_eq!(window(135, 165).next_open(spring), at("2026-03-30T00:15:00Z"), "lies in the gap");
    let autumn = window(120, 180);
    assert_eq!(autumn.next_open(at("2026-10-24T22:00:00Z")), at("2026-10-25T00:00:00Z"));
    for (time, open) in [("00:30:00Z", true), ("01:30:00Z", true), ("02:00:00Z", false)] {
        assert_eq!(autumn.is_open(at(&format!("2026-10-25T{time}"))), open, "{time}");
    }
}

#[test]
fn an_unknown_zone_has_a_hint() {
    for (name, hint) in [
        ("Berlin", "did you mean Europe/Berlin?"),
        ("Europa/Berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("Moon/Tranquillity", "write a name such as Europe/Berlin, or an offset such as +01:00"),
    ] {
        let error = find_time_zone(name).unwrap_err();
        assert_eq!(error.to_string(), format!("unknown time zone: {name}\n  hint: {hint}"));
    }
}

#[test]
fn every_zone_of_the_system_fits() {
    let mut count = 0;
    for name in tz::db().available() {
        let zone = find_time_zone(name.as_str());
        assert!(zone.is_ok() || !TimeZone::is_name(name.as_str()), "{name}: {zone:?}");
        count += 1;
    }
    assert!(count > 300, "{count}");
}
