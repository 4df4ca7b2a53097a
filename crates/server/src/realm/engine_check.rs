//! Checks of the engine before a server uses it.

use std::time::Duration;

use forewarn_realm::{Engine, MemberVersion, VersionVerdict};

/// Longest wait for the versions of all members.
const LIMIT: Duration = Duration::from_secs(1);

/// A member of etcd has a version that is known to lose data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "etcd {version} is known to lose acknowledged writes: {endpoint}\n  hint: upgrade every member to 3.5.6 or later, \
     one after the other"
)]
pub struct UnsafeVersion {
    pub endpoint: String,
    pub version: String,
}

/// Refuses an engine with a version that is known to lose data. Members that do not answer are not judged.
pub(crate) async fn refuse_unsafe_versions(engine: &Engine) -> Result<(), UnsafeVersion> {
    judge(engine.member_versions(LIMIT).await)
}

fn judge(members: Vec<MemberVersion>) -> Result<(), UnsafeVersion> {
    for MemberVersion { endpoint, version } in members {
        let Some(version) = version else { continue };
        match VersionVerdict::of(&version) {
            VersionVerdict::LosesData => return Err(UnsafeVersion { endpoint, version }),
            VersionVerdict::Outdated => {
                tracing::warn!(endpoint, version, "version of etcd is outdated");
            }
            VersionVerdict::Unknown => tracing::warn!(endpoint, version, "version of etcd is unknown"),
            VersionVerdict::Good => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: D5
    #[test]
    fn one_member_that_loses_data_is_enough_for_a_refusal() {
        let member = |endpoint: &str, version: Option<&str>| MemberVersion {
            endpoint: endpoint.to_owned(),
            version: version.map(str::to_owned),
        };
        let good = [member("a", Some("3.5.16")), member("b", None), member("c", Some("3.4.23"))];
        assert_eq!(judge(good.to_vec()), Ok(()));
        let mixed = vec![member("a", Some("3.5.16")), member("b", Some("3.5.2"))];
        let refused = judge(mixed).unwrap_err().to_string();
        assert!(
            refused.starts_with("etcd 3.5.2 is known to lose acknowledged writes: b\n  hint: "),
            "{refused}"
        );
    }
}
