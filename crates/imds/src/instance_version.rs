//! The versions of instance metadata: dates, so their order is the order of their texts.

/// A version of instance metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceVersion(&'static str);

impl InstanceVersion {
    /// The texts of all of them, oldest first.
    const TEXTS: &'static [&'static str] = &[
        "2017-03-01",
        "2017-04-02",
        "2017-08-01",
        "2017-10-01",
        "2017-12-01",
        "2018-02-01",
        "2018-04-02",
        "2018-10-01",
        "2019-02-01",
        "2019-03-11",
        "2019-04-30",
        "2019-06-01",
        "2019-06-04",
        "2019-08-01",
        "2019-08-15",
        "2019-11-01",
        "2020-06-01",
        "2020-07-15",
        "2020-09-01",
        "2020-10-01",
        "2020-12-01",
        "2021-01-01",
        "2021-02-01",
        "2021-03-01",
        "2021-05-01",
        "2021-08-01",
        "2021-10-01",
        "2021-11-01",
        "2021-11-15",
        "2021-12-13",
        "2023-07-01",
        "2023-11-15",
        "2024-03-15",
        "2024-07-17",
        "2025-04-07",
    ];

    pub(crate) const V2017_04_02: Self = Self("2017-04-02");
    pub(crate) const V2017_08_01: Self = Self("2017-08-01");
    pub(crate) const V2017_12_01: Self = Self("2017-12-01");
    pub(crate) const V2019_03_11: Self = Self("2019-03-11");
    pub(crate) const V2019_06_04: Self = Self("2019-06-04");
    pub(crate) const V2020_07_15: Self = Self("2020-07-15");
    pub(crate) const V2020_12_01: Self = Self("2020-12-01");
    pub(crate) const V2021_03_01: Self = Self("2021-03-01");

    /// All versions, oldest first.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::TEXTS.iter().copied().map(Self)
    }

    /// The version of that `api-version`; `None` if it is unknown.
    ///
    /// ```
    /// use forewarn_imds::InstanceVersion;
    /// let (old, new) = (InstanceVersion::parse("2017-12-01"), InstanceVersion::parse("2021-02-01"));
    /// assert!(old.unwrap() < new.unwrap());
    /// assert!(InstanceVersion::parse("latest").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::all().find(|version| version.0 == text)
    }

    /// The `api-version`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// The body of `/metadata/versions`.
#[must_use]
pub fn versions_body() -> String {
    let quoted: Vec<_> = InstanceVersion::TEXTS.iter().map(|version| format!(r#""{version}""#)).collect();
    format!(r#"{{"apiVersions":[{}]}}"#, quoted.join(","))
}
