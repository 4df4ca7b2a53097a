//! Windows in their written form: `sat,sun 22:00-04:00 Europe/Berlin`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use forewarn_lifecycle::{TimeZone, Weekdays, Window};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::command::time_zone::{TimeZoneError, find_time_zone};

/// A window; a text such as `mon-fri 22:00-06:00 +01:00` or `sat 22:00-04:00 Europe/Berlin`. A name of a time zone is
/// not looked up before the window is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowEntry {
    days: Weekdays,
    from_minute: u16,
    to_minute: u16,
    clock: WindowClock,
}

/// The local time of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WindowClock {
    /// Offset from UTC, in minutes.
    Offset(i16),
    /// Name of a time zone.
    Zone(String),
}

/// A text that is not a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid window {0:?}\n  hint: write 22:00-06:00, mon-fri 22:00-06:00, \"sat,sun 00:00-24:00 +01:00\" or \
     \"sat 22:00-04:00 Europe/Berlin\""
)]
pub struct WindowError(String);

impl WindowEntry {
    /// The window, with the offsets of its time zone.
    ///
    /// # Errors
    /// Fails if the time zone is unknown.
    pub fn resolve(&self) -> Result<Window, TimeZoneError> {
        let Self { days, from_minute, to_minute, clock } = self;
        let window = match clock {
            WindowClock::Offset(minutes) => Window::new(*days, *from_minute, *to_minute, *minutes),
            WindowClock::Zone(name) => {
                Window::in_zone(*days, *from_minute, *to_minute, find_time_zone(name)?)
            }
        };
        // The numbers of an entry were checked when it was read.
        window.ok_or_else(|| TimeZoneError::Unusable(self.to_string()))
    }
}

impl From<&Window> for WindowEntry {
    fn from(window: &Window) -> Self {
        let offset = || WindowClock::Offset(window.offset_minutes());
        Self {
            days: window.days(),
            from_minute: window.from_minute(),
            to_minute: window.to_minute(),
            clock: window.zone().map_or_else(offset, |zone| WindowClock::Zone(zone.name().to_owned())),
        }
    }
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl fmt::Display for WindowEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days != Weekdays::ALL {
            write!(out, "{} ", show_days(self.days))?;
        }
        let time = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        write!(out, "{}-{}", time(self.from_minute), time(self.to_minute))?;
        match &self.clock {
            WindowClock::Offset(0) => Ok(()),
            WindowClock::Offset(offset) => {
                let sign = if *offset < 0 { '-' } else { '+' };
                write!(out, " {sign}{}", time(offset.unsigned_abs()))
            }
            WindowClock::Zone(name) => write!(out, " {name}"),
        }
    }
}

/// Days in the order of the week: three and more that follow each other as a span, `mon-fri,sun`.
fn show_days(days: Weekdays) -> String {
    let mut spans: Vec<Vec<&str>> = Vec::new();
    let mut before = false;
    for (day, name) in (0u8..).zip(DAYS) {
        let is_in = days.contains(day);
        match spans.last_mut() {
            Some(span) if is_in && before => span.push(name),
            Some(_) | None if is_in => spans.push(vec![name]),
            Some(_) | None => {}
        }
        before = is_in;
    }
    let words = spans.iter().map(|span| match span.as_slice() {
        [first, _, .., last] => format!("{first}-{last}"),
        short => short.join(","),
    });
    words.collect::<Vec<_>>().join(",")
}

impl FromStr for WindowEntry {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        parse_window(text).ok_or_else(|| WindowError(text.chars().take(100).collect()))
    }
}

/// `[DAYS] HH:MM-HH:MM [OFFSET|ZONE]`: days are names or spans of them, with commas between; the offset is that from
/// UTC, the zone a name of the time zone database.
fn parse_window(text: &str) -> Option<WindowEntry> {
    let mut words = text.split_whitespace().peekable();
    let has_days = words.peek()?.starts_with(|first: char| first.is_ascii_alphabetic());
    let days = if has_days { parse_days(words.next()?)? } else { Weekdays::ALL };
    let (from, to) = words.next()?.split_once('-')?;
    let (from_minute, to_minute) = (parse_minute(from)?, parse_minute(to)?);
    let clock = words.next().map_or(Some(WindowClock::Offset(0)), parse_clock)?;
    // 24:00 is the midnight of the next day.
    if words.next().is_some() || from_minute == 1440 {
        return None;
    }
    Some(WindowEntry { days, from_minute, to_minute: to_minute % 1440, clock })
}

/// An offset from UTC of at most 14 hours, or a name that may be one of a time zone.
fn parse_clock(text: &str) -> Option<WindowClock> {
    if let Some(minutes) = parse_offset(text) {
        return Window::new(Weekdays::ALL, 0, 0, minutes).map(|_| WindowClock::Offset(minutes));
    }
    // Only the database knows the names.
    TimeZone::has_form_of_name(text).then(|| WindowClock::Zone(text.to_owned()))
}

fn parse_days(text: &str) -> Option<Weekdays> {
    if text == "daily" {
        return Some(Weekdays::ALL);
    }
    let day = |name: &str| DAYS.iter().position(|day| *day == name.to_ascii_lowercase());
    let mut bits = 0u8;
    for span in text.split(',') {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        let (first, last) = (day(first)?, day(last)?);
        // A span may wrap around the end of the week.
        let length = (last + 7 - first) % 7;
        (0..=length).for_each(|days| bits |= 1 << ((first + days) % 7));
    }
    Weekdays::from_bits(bits)
}

fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |digits: &str| {
        let right = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if right { digits.parse::<u16>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (minutes < 60 && hours * 60 + minutes <= 1440).then_some(hours * 60 + minutes)
}

fn parse_offset(text: &str) -> Option<i16> {
    if matches!(text, "Z" | "UTC" | "utc") {
        return Some(0);
    }
    let minutes = i16::try_from(parse_minute(text.get(1..)?)?).ok()?;
    match text.as_bytes().first()? {
        b'+' => Some(minutes),
        b'-' => Some(-minutes),
        _ => None,
    }
}

/// Pattern of the texts that [`parse_window`] accepts, as far as a pattern can express it.
const WINDOW: &str = concat!(
    r"^((daily|(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?(,(mon|tue|wed|thu|fri|sat|sun)",
    r"(-(mon|tue|wed|thu|fri|sat|sun))?)*) )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)",
    r"( (Z|UTC|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*))?$",
);

impl JsonSchema for WindowEntry {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Hours on some days of the week, with an offset from UTC or in a time zone: `22:00-06:00`, `mon-fri 22:00-06:00 +01:00`, `sat 22:00-04:00 Europe/Berlin`.",
            "type": "string",
            "pattern": WINDOW,
        })
    }
}

impl Serialize for WindowEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WindowEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
