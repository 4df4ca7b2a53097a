//! `api-version`: the date that states which API a client uses.

use std::fmt;

/// A version of the API: `2019-03-01`, or `2025-10-01-preview`. Versions are ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion {
    year: u16,
    month: u8,
    day: u8,
    preview: bool,
}

/// Error for an invalid version, or one before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVersion;

impl ApiVersion {
    /// The first version of Microsoft.Compute.
    pub const FIRST: Self = Self::new(2015, 6, 15);
    /// The first version with `scheduledEventsProfile`.
    pub const SCHEDULED_EVENTS_PROFILE: Self = Self::new(2019, 3, 1);

    /// The version of a date.
    #[must_use]
    pub const fn new(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day, preview: false }
    }

    /// Parses a version.
    ///
    /// # Errors
    /// Fails if it is invalid.
    ///
    /// ```
    /// use forewarn_azure::ApiVersion;
    /// assert!(ApiVersion::parse("2018-10-01")? < ApiVersion::SCHEDULED_EVENTS_PROFILE);
    /// assert!(ApiVersion::parse("2018-13-01").is_err());
    /// # Ok::<_, forewarn_azure::InvalidVersion>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        let (date, preview) = match text.split_at_checked(10) {
            Some((date, "")) => (date, false),
            Some((date, rest)) if rest.eq_ignore_ascii_case("-preview") => (date, true),
            Some(_) | None => return Err(InvalidVersion),
        };
        let shape = |(position, byte): (usize, u8)| match position {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        if !date.bytes().enumerate().all(shape) {
            return Err(InvalidVersion);
        }
        let number = |from: usize, to: usize| date[from..to].parse().map_err(|_| InvalidVersion);
        let (month, day) = (number(5, 7)?, number(8, 10)?);
        let (Ok(month), Ok(day)) = (u8::try_from(month), u8::try_from(day)) else {
            return Err(InvalidVersion);
        };
        let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
        if is_date { Ok(Self { year: number(0, 4)?, month, day, preview }) } else { Err(InvalidVersion) }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, preview } = self;
        write!(out, "{year:04}-{month:02}-{day:02}{}", if *preview { "-preview" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_date_or_a_preview_of_one() {
        for text in ["2015-06-15", "2019-03-01", "2025-10-01-preview"] {
            assert_eq!(ApiVersion::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "2019",
            "2019-3-1",
            "2019-03-01-beta",
            "2019-00-01",
            "2019-03-32",
            "+019-03-01",
            "20１9-03-01",
        ] {
            assert_eq!(ApiVersion::parse(text), Err(InvalidVersion), "{text}");
        }
        assert!(ApiVersion::new(2019, 3, 1) < ApiVersion::parse("2019-03-01-preview").unwrap());
    }
}
