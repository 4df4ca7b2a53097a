//! The servers of a realm, and the realm itself: request bodies and views.

use std::collections::BTreeMap;

use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::schema;

/// A server of a realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealmServerView {
    /// Name of the server.
    pub name: String,
    /// State of the server, as the answering server sees it.
    pub state: ServerStateWord,
    /// Address for other servers; null if the server is gone.
    pub address: Option<String>,
    /// Version of the program; null if the server is gone.
    pub version: Option<String>,
    /// Formats of records that the server reads.
    pub formats: Vec<u32>,
    /// Zone of the server; null if it has none.
    pub zone: Option<String>,
    /// Names of the clusters that the server owns.
    pub clusters: Vec<String>,
    /// True for the server that answers this request.
    pub answering: bool,
    /// Milliseconds since the last heartbeat of the server; null for the answering one, and before the first heartbeat.
    pub heartbeat_millis: Option<u64>,
    /// Milliseconds since the engine last answered the server; null if that is not known.
    pub engine_millis: Option<u64>,
    /// Milliseconds by which the clock of the server is ahead of the one of the answering server; null if that is not
    /// known.
    pub clock_ahead_millis: Option<i64>,
}

/// State of a server of a realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerStateWord {
    /// It may own clusters.
    Active,
    /// It gives its clusters away, and takes none.
    Draining,
    /// It is a member, and sends no heartbeats.
    Silent,
    /// It is no member any more; its archive is known.
    Gone,
}

/// Drain of a server: `on` moves its clusters to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainChange {
    /// The wanted state.
    pub drain: DrainWord,
}

/// State of the drain of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DrainWord {
    /// The server gives its clusters away, and takes none, until it restarts.
    On,
    /// The server may own clusters.
    Off,
}

/// Move of a cluster to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterMoveRequest {
    /// Name of the server that should own the cluster, and is preferred from now on.
    #[schemars(with = "schema::Name")]
    pub to: String,
}

/// The owner of a cluster in a realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterOwnerView {
    /// Name of the server; null while there is none.
    pub server: Option<String>,
    /// Number of changes of the owner.
    pub term: u64,
    /// Server that an operator prefers as the owner; null for none.
    pub preferred: Option<String>,
}

/// A realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealmView {
    /// Fingerprint of the identity of the realm.
    pub identity: String,
    /// Creation time.
    pub created: Moment,
    /// The format in which records are written.
    pub format: u32,
    /// Number of restores that an operator has accepted.
    pub restores: u64,
    /// The reason why no server owns clusters: the engine was restored from an older backup. Absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// The servers.
    pub servers: Vec<RealmServerView>,
    /// Members of the engine.
    pub engine: Vec<EngineMemberView>,
    /// Streams: `shared`, and `cluster-N` for each cluster; with the number of the last batch.
    pub streams: BTreeMap<String, StreamView>,
}

/// A member of the engine of a realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineMemberView {
    /// URL of the member.
    pub endpoint: String,
    /// Version of the engine; null if the member does not answer.
    pub version: Option<String>,
    /// Bytes of its database; null if the member does not answer.
    pub bytes: Option<u64>,
    /// Maximum bytes of its database; null if the member does not tell.
    pub bytes_max: Option<u64>,
    /// The reason why the member does not answer, or problems that it reports. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A stream of a realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamView {
    /// Number of the last batch.
    pub number: u64,
    /// Number of changes of the owner; 0 for the shared stream.
    pub term: u64,
    /// The owner; null for the shared stream, and while there is none.
    pub owner: Option<String>,
}

/// The format in which records of a realm are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatChange {
    /// Number of the format.
    pub format: u32,
}
