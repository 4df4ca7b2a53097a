//! Durations in the syntax of ISO 8601: `PT5M`, `PT7M30S`, `P0DT5M`.

use std::time::Duration;

/// Maximum number of characters; no duration needs more.
const CHARS_MAX: usize = 40;

const DATE_UNITS: [(char, u64); 2] = [('W', 604_800), ('D', 86_400)];
const TIME_UNITS: [(char, u64); 3] = [('H', 3_600), ('M', 60), ('S', 1)];

/// Reads a duration in whole seconds. Years, months and fractions of a second are rejected.
///
/// ```
/// use std::time::Duration;
/// use forewarn_control::resource_id::parse_iso_duration;
///
/// assert_eq!(parse_iso_duration("PT7M30S"), Some(Duration::from_secs(450)));
/// assert_eq!(parse_iso_duration("P1D"), Some(Duration::from_secs(86_400)));
/// assert_eq!(parse_iso_duration("10"), None);
/// ```
#[must_use]
pub fn parse_iso_duration(text: &str) -> Option<Duration> {
    if text.len() > CHARS_MAX {
        return None;
    }
    let (date, time) = match text.strip_prefix('P')?.split_once('T') {
        // A `T` without a time after it is invalid.
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text.strip_prefix('P')?, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let seconds = parts(date, &DATE_UNITS)?.checked_add(parts(time, &TIME_UNITS)?)?;
    Some(Duration::from_secs(seconds))
}

/// Writes a duration as [`parse_iso_duration`] reads it.
///
/// ```
/// use std::time::Duration;
/// use forewarn_control::resource_id::show_iso_duration;
///
/// assert_eq!(show_iso_duration(Duration::from_secs(450)), "PT7M30S");
/// assert_eq!(show_iso_duration(Duration::from_secs(900)), "PT15M");
/// assert_eq!(show_iso_duration(Duration::ZERO), "PT0S");
/// ```
#[must_use]
pub fn show_iso_duration(length: Duration) -> String {
    let mut left = length.as_secs();
    let mut text = "PT".to_owned();
    for (unit, seconds) in TIME_UNITS {
        if left >= seconds {
            text.push_str(&(left / seconds).to_string());
            text.push(unit);
            left %= seconds;
        }
    }
    if text == "PT" { "PT0S".to_owned() } else { text }
}

/// Numbers with a unit, larger units first, each once.
fn parts(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let (mut rest, mut seconds) = (text, 0_u64);
    for (unit, length) in units {
        let Some((number, behind)) = rest.split_once(*unit) else { continue };
        // Some clients write a fraction of zero.
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_whole = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
        let may_have_fraction = *unit == 'S' || !number.contains('.');
        let is_number = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
        if !is_whole || !may_have_fraction || !is_number {
            return None;
        }
        seconds = seconds.checked_add(whole.parse::<u64>().ok()?.checked_mul(*length)?)?;
        rest = behind;
    }
    rest.is_empty().then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_duration_is_read_in_every_spelling() {
        for (text, seconds) in [
            ("PT5M", 300),
            ("PT7M30S", 450),
            ("PT600S", 600),
            ("PT0H15M", 900),
            ("P0DT5M", 300),
            ("PT5M0.000S", 300),
            ("PT0005M", 300),
            ("P1D", 86_400),
            ("P1W", 604_800),
            ("P1DT1H1M1S", 90_061),
            ("PT0S", 0),
        ] {
            assert_eq!(parse_iso_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in [
            "",
            "10",
            "P",
            "PT",
            "P1DT",
            "T5M",
            "5M",
            "pt5m",
            "PT5m",
            "PT5",
            "PT5M5",
            "PTM",
            "PT5M5M",
            "PT5S5M",
            "PT-5M",
            "-PT5M",
            "+PT5M",
            "PT+5M",
            "PT5.5M",
            "PT5.0M",
            "PT300.5S",
            "PT300.S",
            "PT.0S",
            "P1Y",
            "P5M",
            "PT5M ",
            " PT5M",
            "PT5MT5M",
            "00:05:00",
            "PT٥M",
            "PT99999999999999999999S",
            "PT18446744073709551615H",
            "PT000000000000000000000000000000000000005M",
        ] {
            assert_eq!(parse_iso_duration(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_length_reads_as_it_is_written(seconds in 0..10_000_000_u64) {
            let length = Duration::from_secs(seconds);
            prop_assert_eq!(parse_iso_duration(&show_iso_duration(length)), Some(length));
        }

        #[test]
        fn no_text_makes_the_reader_stumble(text in "P?T?\\PC{0,12}") {
            let _ = parse_iso_duration(&text);
        }
    }
}
