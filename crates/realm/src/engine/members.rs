//! The members of the engine, for people.

use std::time::Duration;

use super::Engine;

/// A member of the engine, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineMember {
    /// Its URL, or a name.
    pub endpoint: String,
    /// None if it does not answer.
    pub status: Option<EngineMemberStatus>,
    /// The reason why it does not answer, or problems that it reports.
    pub problem: Option<String>,
}

/// The status of a member of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineMemberStatus {
    pub version: String,
    /// Bytes of its database.
    pub bytes: u64,
    /// Maximum bytes of its database, if it tells.
    pub bytes_max: Option<u64>,
}

impl Engine {
    /// The members that the settings name. Each of them is asked within the time limit.
    pub async fn members(&self, limit: Duration) -> Vec<EngineMember> {
        match self {
            Self::Etcd(etcd) => {
                let client = etcd.client().within(limit);
                let endpoints: Vec<_> = client.endpoints().map(|url| url.authority().to_owned()).collect();
                let mut members = Vec::new();
                for (number, endpoint) in endpoints.into_iter().enumerate() {
                    members.push(match client.status(number).await {
                        Ok(status) => EngineMember {
                            endpoint,
                            problem: Some(status.problems.join("; ")).filter(|text| !text.is_empty()),
                            status: Some(EngineMemberStatus {
                                version: status.version,
                                bytes: u64::try_from(status.database_bytes).unwrap_or(0),
                                bytes_max: status.database_bytes_max.and_then(|max| max.try_into().ok()),
                            }),
                        },
                        Err(error) => {
                            EngineMember { endpoint, status: None, problem: Some(error.to_string()) }
                        }
                    });
                }
                members
            }
            Self::Simulated(_) => Vec::new(),
        }
    }
}
