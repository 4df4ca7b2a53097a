//! Versions of etcd, and the verdict on each: some have lost data.

use std::fmt;
use std::str::FromStr;

/// A version of etcd, such as 3.5.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EtcdVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// A text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version of etcd: {0:?}")]
pub(crate) struct InvalidEtcdVersion(String);

impl FromStr for EtcdVersion {
    type Err = InvalidEtcdVersion;

    fn from_str(text: &str) -> Result<Self, InvalidEtcdVersion> {
        // Distributions append their own revision: 3.5.16+dfsg.
        let numbers = text.split(['-', '+', '~']).next().unwrap_or_default();
        let mut numbers = numbers.splitn(3, '.').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten().ok_or_else(|| InvalidEtcdVersion(text.to_owned()));
        Ok(Self { major: next()?, minor: next()?, patch: next()? })
    }
}

impl fmt::Display for EtcdVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl EtcdVersion {
    /// The reason why servers must not use this version. None if they may.
    pub(crate) fn obstacle(self) -> Option<&'static str> {
        match (self.major, self.minor, self.patch) {
            (3, 5, 0..=5) => Some("versions 3.5.0 to 3.5.5 have lost data of members that were killed"),
            (3, 4, 21) => Some("version 3.4.21 has lost data of members that were killed"),
            (3, 4, 22..) | (3, 5.., _) => None,
            (4.., ..) => Some("it is newer than any version that was tested"),
            (..3, ..) | (3, _, _) => Some("it is too old"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_have_lost_data_are_refused() {
        let obstacle = |text: &str| text.parse::<EtcdVersion>().unwrap().obstacle();
        for good in ["3.4.22", "3.4.23", "3.5.6", "3.5.16+dfsg", "3.6.0-rc.1"] {
            assert_eq!(obstacle(good), None, "{good}");
        }
        for bad in ["3.5.0", "3.5.5", "3.4.21"] {
            assert!(obstacle(bad).unwrap().contains("lost data"), "{bad}");
        }
        for old in ["3.4.20", "3.3.27", "2.3.8", "0.0.0"] {
            assert_eq!(obstacle(old), Some("it is too old"), "{old}");
        }
        assert!(obstacle("4.0.0").is_some());
    }

    #[test]
    fn a_text_that_is_no_version_is_an_error() {
        for wrong in ["", "3", "3.4", "3.4.x", "v3.4.22", "3..22", "99999999999.1.1"] {
            assert_eq!(wrong.parse::<EtcdVersion>(), Err(InvalidEtcdVersion(wrong.to_owned())));
        }
        assert_eq!("3.5.16+dfsg".parse::<EtcdVersion>().unwrap().to_string(), "3.5.16");
    }
}
