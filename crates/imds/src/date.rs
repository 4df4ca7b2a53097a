//! Dates as documents and HTTP headers write them: `Wed, 24 Jan 2018 21:20:44 GMT`.
//!
//! There is exactly one form for each point in time, and parsing accepts no other.

use forewarn_types::Timestamp;
use jiff::SignedDuration;
use jiff::civil::DateTime;

// Civil time, because it reaches to the last second of the year 9999; jiff's own timestamps end a day earlier.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
const FORMAT: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// Writes a date; parts of a second are dropped.
///
/// ```
/// use forewarn_types::Timestamp;
/// let when = Timestamp::from_millis(1_516_828_844_999);
/// assert_eq!(forewarn_imds::print_date(when), "Wed, 24 Jan 2018 21:20:44 GMT");
/// ```
#[must_use]
pub fn print_date(when: Timestamp) -> String {
    EPOCH.saturating_add(SignedDuration::from_secs(when.seconds())).strftime(FORMAT).to_string()
}

/// Reads a date that is written as [`print_date`] writes it, from the year 1970 on.
#[must_use]
pub fn parse_date(text: &str) -> Option<Timestamp> {
    let since_epoch = DateTime::strptime(FORMAT, text).ok()?.duration_since(EPOCH);
    let when = Timestamp::from_millis(since_epoch.as_secs().checked_mul(1_000)?);
    (print_date(when) == text).then_some(when)
}

/// Reads the form of the earliest documents, `2016-09-19T18:29:47Z`, which some services still write.
#[must_use]
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let when: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_millis(when.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAST_SECOND: i64 = 253_402_300_799;

    #[test]
    fn the_first_and_the_last_second_have_their_dates() {
        let dates = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (LAST_SECOND, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (seconds, text) in dates {
            let when = Timestamp::from_millis(seconds * 1_000);
            assert_eq!(print_date(when), text);
            assert_eq!(parse_date(text), Some(when));
        }
    }

    #[test]
    fn other_date_formats_are_rejected() {
        for wrong in [
            "",
            "GMT",
            "Thu, 24 Jan 2018 21:20:44 GMT",
            "Wed, 24 Jan 2018 21:20:44 UTC",
            "Wed, 24 Jan 2018 21:20:44 GMT ",
            " Wed, 24 Jan 2018 21:20:44 GMT",
            "wed, 24 jan 2018 21:20:44 GMT",
            "Wed, 24 Jan 2018 21:20:44 +0000",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Wed, 30 Feb 2018 00:00:00 GMT",
            "2018-01-24T21:20:44Z",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_early_form_is_read_too() {
        let iso = parse_iso("2018-01-24T21:20:44Z");
        assert_eq!(iso, parse_date("Wed, 24 Jan 2018 21:20:44 GMT"));
        assert_eq!(parse_iso("2018-01-24"), None);
    }

    proptest! {
        /// promise: M1
        #[test]
        fn every_second_is_read_as_it_is_written(seconds in 0..=LAST_SECOND, part in 0..1_000_i64) {
            let text = print_date(Timestamp::from_millis(seconds * 1_000 + part));
            prop_assert_eq!(text.len(), 29);
            prop_assert_eq!(parse_date(&text), Some(Timestamp::from_millis(seconds * 1_000)));
        }

        #[test]
        fn parsing_a_date_never_panics(text in ".{0,40}") {
            if let Some(when) = parse_date(&text) {
                prop_assert_eq!(print_date(when), text);
            }
        }
    }
}
