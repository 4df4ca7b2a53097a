//! Versions of etcd that are safe to use.

use std::time::Duration;

use forewarn_etcd::{EtcdClient, Url};
use tokio::task::JoinSet;

use super::Engine;

/// A version of etcd, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EtcdVersion(u32, u32, u32);

/// The judgement on a version of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionVerdict {
    Good,
    /// It works; its release gets no more fixes.
    Outdated,
    /// It is known to lose data: no server starts with it.
    LosesData,
    /// The version is no number.
    Unknown,
}

/// The version of the member at an endpoint. None if the member does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberVersion {
    pub endpoint: String,
    pub version: Option<String>,
}

impl EtcdVersion {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.splitn(3, '.');
        let mut next = || {
            let word = numbers.next()?;
            let digits = word.find(|digit: char| !digit.is_ascii_digit()).map_or(word, |end| &word[..end]);
            digits.parse().ok()
        };
        Some(Self(next()?, next()?, next()?))
    }
}

impl VersionVerdict {
    /// The judgement on a version, such as `3.5.16`.
    #[must_use]
    pub fn of(version: &str) -> Self {
        let Some(version) = EtcdVersion::parse(version) else { return Self::Unknown };
        if version < EtcdVersion(3, 4, 22) || (EtcdVersion(3, 5, 0)..EtcdVersion(3, 5, 6)).contains(&version)
        {
            Self::LosesData
        } else if version < EtcdVersion(3, 5, 0) {
            Self::Outdated
        } else {
            Self::Good
        }
    }
}

impl Engine {
    /// The versions of the members at all endpoints, within a time limit. Empty for a simulated engine.
    pub async fn member_versions(&self, limit: Duration) -> Vec<MemberVersion> {
        match self {
            Self::Etcd(etcd) => member_versions(&etcd.client().within(limit), limit).await,
            Self::Simulated(_) => Vec::new(),
        }
    }
}

async fn member_versions(client: &EtcdClient, limit: Duration) -> Vec<MemberVersion> {
    let mut calls = JoinSet::new();
    for number in 0..client.endpoints().len() {
        let client = client.clone();
        calls.spawn(async move {
            let status = tokio::time::timeout(limit, client.status(number)).await;
            (number, status.ok().and_then(Result::ok).map(|status| status.version))
        });
    }
    let member = |url: &Url| MemberVersion { endpoint: url.redacted_to_host(), version: None };
    let mut members: Vec<_> = client.endpoints().map(member).collect();
    while let Some(ended) = calls.join_next().await {
        if let Ok((number, version)) = ended {
            members[number].version = version;
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_have_lost_data_are_refused() {
        let verdicts = [
            (
                VersionVerdict::LosesData,
                ["3.3.27", "3.4.0", "3.4.21", "3.5.0", "3.5.0-rc.1", "3.5.5", "2.3.8"],
            ),
            (
                VersionVerdict::Outdated,
                ["3.4.22", "3.4.23", "3.4.34", "3.4.100", "3.4.22+git", "3.4.23", "3.4.23"],
            ),
            (VersionVerdict::Good, ["3.5.6", "3.5.16", "3.6.0", "3.6.4", "4.0.0", "3.10.1", "3.5.21"]),
            (VersionVerdict::Unknown, ["", "3", "3.5", "three", "3..5", "-1.2.3", "99999999999.0.0"]),
        ];
        for (verdict, versions) in verdicts {
            for version in versions {
                assert_eq!(VersionVerdict::of(version), verdict, "{version}");
            }
        }
    }
}
