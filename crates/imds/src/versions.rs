//! The values of `api-version` that a path supports.
//!
//! The two services under `/metadata` have separate versions. The response to an invalid one names the newest of the
//! list against which it was checked.

use crate::edition::Edition;
use crate::instance_version::InstanceVersion;

/// A list of versions, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionList {
    /// `/metadata/scheduledevents`.
    ScheduledEvents,
    /// `/metadata/instance`, and paths without a list of their own.
    Instance,
}

impl VersionList {
    /// The versions, oldest first.
    #[must_use]
    pub fn versions(self) -> Vec<&'static str> {
        match self {
            Self::ScheduledEvents => Edition::ALL.map(Edition::as_str).to_vec(),
            Self::Instance => InstanceVersion::all().map(InstanceVersion::as_str).collect(),
        }
    }

    /// The three newest, newest first.
    pub fn newest(self) -> impl Iterator<Item = &'static str> {
        self.versions().into_iter().rev().take(3)
    }

    /// Returns true if any list has that version: on an unknown path, neither list takes precedence.
    #[must_use]
    pub fn any_has(version: &str) -> bool {
        [Self::ScheduledEvents, Self::Instance].iter().any(|list| list.versions().contains(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_own_newest() {
        let newest = |list: VersionList| list.newest().collect::<Vec<_>>();
        assert_eq!(newest(VersionList::ScheduledEvents), ["2020-07-01", "2019-08-01", "2019-04-01"]);
        assert_eq!(newest(VersionList::Instance), ["2025-04-07", "2024-07-17", "2024-03-15"]);
    }

    #[test]
    fn a_version_of_either_list_is_known_somewhere() {
        assert!(VersionList::any_has("2019-01-01"), "an edition only");
        assert!(VersionList::any_has("2017-04-02"), "an instance version only");
        assert!(VersionList::any_has("2017-03-01"), "both");
        assert!(!VersionList::any_has("latest"));
        assert!(!VersionList::any_has(""));
    }
}
