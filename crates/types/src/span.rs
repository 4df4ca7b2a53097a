//! Durations and points in time, as people write them: `90s`, `15m`, `9m50s`, `7d`; `2026-01-01T00:00:00Z`.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// A length of time in whole seconds; a text such as `9m50s` in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A moment; a text such as `2026-01-01T00:00:00Z` in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&show_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl std::str::FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        parse_duration(text).map(Self).ok_or_else(|| NotASpan(text.to_owned()))
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a duration: {0:?}\n  hint: write 90s, 15m, 9m50s, 2h or 7d")]
pub struct NotASpan(String);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0.millis()) {
            Ok(moment) => moment.fmt(out),
            // Years after 9999 are written as numbers.
            Err(_) => write!(out, "{}{BEYOND}", self.0.millis()),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let wrong = || NotAMoment(text.to_owned());
        if let Some(millis) = text.strip_suffix(BEYOND) {
            return millis.parse().map(Timestamp::from_millis).map(Self).map_err(|_| wrong());
        }
        let moment: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
        Ok(Self(Timestamp::from_millis(moment.as_millisecond())))
    }
}

/// Suffix of the number of a time without a date.
const BEYOND: &str = " ms after 1970";

/// A text that is not a date and time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a date and time: {0:?}\n  hint: write 2026-01-01T00:00:00Z")]
pub struct NotAMoment(String);

/// Reads `90s`, `15m`, `9m50s`, `2h`, `7d`: one or more numbers with a unit, larger units first.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(forewarn_types::parse_duration("9m50s"), Some(Duration::from_secs(590)));
/// assert_eq!(forewarn_types::parse_duration("7d"), Some(Duration::from_secs(604_800)));
/// assert_eq!(forewarn_types::parse_duration("50s9m"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0u64;
    for (unit, length) in UNITS {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits > 0 && rest[digits..].starts_with(unit) {
            let number: u64 = rest[..digits].parse().ok()?;
            seconds = seconds.checked_add(number.checked_mul(length)?)?;
            rest = &rest[digits + unit.len_utf8()..];
        }
    }
    (rest.is_empty() && !text.is_empty() && seconds <= DURATION_SECONDS_MAX)
        .then(|| Duration::from_secs(seconds))
}

/// Writes a duration as [`parse_duration`] reads it.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(forewarn_types::show_duration(Duration::from_secs(590)), "9m50s");
/// assert_eq!(forewarn_types::show_duration(Duration::ZERO), "0s");
/// ```
#[must_use]
pub fn show_duration(span: Duration) -> String {
    let mut left = span.as_secs();
    let mut text = String::new();
    for (unit, length) in UNITS {
        if left >= length {
            text.push_str(&(left / length).to_string());
            text.push(unit);
            left %= length;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// A hundred years: enough for any use, and far from overflow.
const DURATION_SECONDS_MAX: u64 = 100 * 366 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_durations_are_rejected() {
        for wrong in
            ["", "s", "5", "5x", "-5s", "5s5m", "5m5m", "1.5h", "9999999999999999999d", "3163000000s"]
        {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!(parse_duration("1d2h3m4s"), Some(Duration::from_secs(93_784)));
        assert_eq!(parse_duration("3162240000s"), Some(Duration::from_secs(DURATION_SECONDS_MAX)));
    }

    #[test]
    fn a_date_and_time_reads_as_it_is_written() {
        let text = "2026-01-01T00:00:05Z";
        let moment: Moment = text.parse().unwrap();
        assert_eq!(moment.0.millis(), 1_767_225_605_000);
        assert_eq!(moment.to_string(), text);
        assert_eq!(serde_json::to_string(&moment).unwrap(), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<Moment>("\"2026-01-01T01:00:05+01:00\"").unwrap(), moment);
        assert!("tomorrow".parse::<Moment>().is_err());
        assert!(Moment(Timestamp::from_millis(i64::MAX)).to_string().contains("after 1970"));
    }

    proptest! {
        #[test]
        fn a_duration_reads_as_it_is_written(seconds in 0..=DURATION_SECONDS_MAX) {
            let span = Duration::from_secs(seconds);
            prop_assert_eq!(parse_duration(&show_duration(span)), Some(span));
            let json = serde_json::to_string(&Span(span)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Span>(&json).unwrap(), Span(span));
        }

        #[test]
        fn every_moment_reads_as_it_is_written(millis in prop_oneof![any::<i64>(), 0..4_000_000_000_000i64]) {
            let moment = Moment(Timestamp::from_millis(millis));
            prop_assert_eq!(moment.to_string().parse::<Moment>(), Ok(moment));
        }

        #[test]
        fn parsing_a_duration_never_panics(text in "\\PC{0,12}") {
            let _ = parse_duration(&text);
        }
    }
}
