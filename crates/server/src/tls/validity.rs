//! Validity of a certificate: the only part of it that is parsed here; rustls does the rest.
//!
//! ```text
//!   Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version?, serial, algorithm, issuer, validity SEQUENCE { from, until }, …
//! ```

use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Two-digit years from here on belong to the last century (RFC 5280).
const CENTURY_TURNS: i16 = 50;

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Start of the validity.
    pub from: SystemTime,
    /// End of the validity.
    pub until: SystemTime,
}

impl Validity {
    /// Reads the validity of a DER certificate. None if it is malformed.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (certificate, _) = expect(certificate, SEQUENCE)?;
        let (mut tbs, _) = expect(certificate, SEQUENCE)?;
        if tbs.first() == Some(&VERSION) {
            tbs = element(tbs)?.2;
        }
        for _ in ["serial", "algorithm", "issuer"] {
            tbs = element(tbs)?.2;
        }
        let (validity, _) = expect(tbs, SEQUENCE)?;
        let (kind, from, rest) = element(validity)?;
        let (other, until, _) = element(rest)?;
        Some(Self { from: moment(kind, from)?, until: moment(other, until)? })
    }
}

fn expect(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(found, ..)| *found == kind).map(|(_, content, rest)| (content, rest))
}

/// Tag, content and rest of the first DER element.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, bytes) = bytes.split_first()?;
    let (first, bytes) = bytes.split_first()?;
    let (length, bytes) = if *first < 0x80 {
        (usize::from(*first), bytes)
    } else {
        let (digits, bytes) = bytes.split_at_checked(usize::from(*first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), bytes)
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((*kind, content, rest))
}

/// `YYMMDDHHMMSSZ`, or with a year of four digits.
fn moment(kind: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let digits = match kind {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    };
    let (year, rest) = text.split_at_checked(digits)?;
    let year: i16 = year.parse().ok()?;
    let year = match kind {
        UTC_TIME if year < CENTURY_TURNS => 2_000 + year,
        UTC_TIME => 1_900 + year,
        _ => year,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let time = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn made(from: i32, until: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 2);
        params.not_after = date_time_ymd(until, 3, 4);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn day(text: &str) -> SystemTime {
        text.parse::<jiff::Timestamp>().unwrap().into()
    }

    #[test]
    fn it_is_read_in_both_forms() {
        let expected = Validity { from: day("1999-01-02T00:00:00Z"), until: day("2051-03-04T00:00:00Z") };
        assert_eq!(Validity::of(&made(1999, 2051)), Some(expected));
    }

    #[test]
    fn a_malformed_certificate_has_no_validity() {
        let whole = made(2020, 2030);
        assert!((0..whole.len()).all(|end| Validity::of(&whole[..end]).is_none()), "a part is not the whole");
        for wrong in [&b""[..], &[0x30], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x80], &[0x31, 0]] {
            assert_eq!(Validity::of(wrong), None);
        }
        assert_eq!(moment(UTC_TIME, b"260230000000Z"), None, "there is no such day");
        assert_eq!(moment(UTC_TIME, "26é1".as_bytes()), None);
    }
}
