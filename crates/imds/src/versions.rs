//! Which values of `api-version` a path knows.
//!
//! The two services under `/metadata` count their versions apart, and an answer to a wrong one names the newest of the
//! list that it was checked against.

use crate::edition::Edition;
use crate::instance_version::InstanceVersion;

/// A list of versions, by the path that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionList {
    /// `/metadata/scheduledevents`.
    ScheduledEvents,
    /// `/metadata/instance`, and whatever has no list of its own.
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

    /// Whether some list has that version: on a path that is not there, no list is more right than the other.
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
