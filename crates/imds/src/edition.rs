//! The editions of the document: the values of `api-version` that `/metadata/scheduledevents` supports.
//!
//! They are ordered, oldest first, so that "since" is a comparison.

use forewarn_types::EventKind;

/// An edition of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// The preview: names of virtual machines have a leading `_`, and the `Metadata` header is not required.
    V2017_03_01,
    /// No more underscore; the `Metadata` header is required.
    V2017_08_01,
    /// Adds `Preempt`.
    V2017_11_01,
    /// Adds `Terminate`.
    V2019_01_01,
    /// Adds `Description`.
    V2019_04_01,
    /// Adds `EventSource`.
    V2019_08_01,
    /// Adds `DurationInSeconds`.
    V2020_07_01,
}

impl Edition {
    /// All editions, oldest first.
    pub const ALL: [Self; 7] = [
        Self::V2017_03_01,
        Self::V2017_08_01,
        Self::V2017_11_01,
        Self::V2019_01_01,
        Self::V2019_04_01,
        Self::V2019_08_01,
        Self::V2020_07_01,
    ];

    /// The edition of that `api-version`; `None` if it is unknown, as `latest` is.
    ///
    /// ```
    /// use forewarn_imds::Edition;
    /// assert_eq!(Edition::parse("2019-08-01"), Some(Edition::V2019_08_01));
    /// assert_eq!(Edition::parse("latest"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edition| edition.as_str() == text)
    }

    /// The `api-version`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2017_03_01 => "2017-03-01",
            Self::V2017_08_01 => "2017-08-01",
            Self::V2017_11_01 => "2017-11-01",
            Self::V2019_01_01 => "2019-01-01",
            Self::V2019_04_01 => "2019-04-01",
            Self::V2019_08_01 => "2019-08-01",
            Self::V2020_07_01 => "2020-07-01",
        }
    }

    /// The newest edition, which has all fields.
    #[must_use]
    pub const fn newest() -> Self {
        Self::V2020_07_01
    }

    /// Returns true if a request needs `Metadata: true`.
    #[must_use]
    pub fn requires_metadata_header(self) -> bool {
        self >= Self::V2017_08_01
    }

    /// Returns true if the edition includes events of that kind.
    #[must_use]
    pub fn knows(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Freeze | EventKind::Reboot | EventKind::Redeploy => true,
            EventKind::Preempt => self >= Self::V2017_11_01,
            EventKind::Terminate => self >= Self::V2019_01_01,
        }
    }

    pub(crate) fn underlines_machine_names(self) -> bool {
        self < Self::V2017_08_01
    }

    pub(crate) fn has_description(self) -> bool {
        self >= Self::V2019_04_01
    }

    pub(crate) fn has_source(self) -> bool {
        self >= Self::V2019_08_01
    }

    pub(crate) fn has_duration(self) -> bool {
        self >= Self::V2020_07_01
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edition_is_read_as_it_is_written() {
        let texts = [
            "2017-03-01",
            "2017-08-01",
            "2017-11-01",
            "2019-01-01",
            "2019-04-01",
            "2019-08-01",
            "2020-07-01",
        ];
        assert_eq!(Edition::ALL.map(Edition::as_str), texts);
        assert_eq!(Edition::ALL.map(|edition| Edition::parse(edition.as_str())), Edition::ALL.map(Some));
        assert!(Edition::ALL.is_sorted());
        assert_eq!(Edition::newest().as_str(), "2020-07-01");
    }

    #[test]
    fn unknown_editions_are_rejected() {
        for wrong in [
            "",
            "latest",
            "01-04-2019",
            "01.01.2019",
            "2019-08-01 ",
            "2019-8-1",
            "2020-06-01",
            "\0",
            "2025-04-07",
        ] {
            assert_eq!(Edition::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_the_preview_does_without_the_header() {
        let lenient: Vec<_> = Edition::ALL.into_iter().filter(|e| !e.requires_metadata_header()).collect();
        assert_eq!(lenient, [Edition::V2017_03_01]);
    }

    #[test]
    fn a_kind_is_known_from_its_edition_on() {
        let first = |kind| Edition::ALL.into_iter().filter(|edition| edition.knows(kind)).collect::<Vec<_>>();
        for always in [EventKind::Freeze, EventKind::Reboot, EventKind::Redeploy] {
            assert_eq!(first(always), Edition::ALL);
        }
        assert_eq!(first(EventKind::Preempt), Edition::ALL[2..]);
        assert_eq!(first(EventKind::Terminate), Edition::ALL[3..]);
    }
}
