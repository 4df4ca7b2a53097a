//! Streams: the shared state and each cluster. Every record, request and audit entry belongs to one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use forewarn_types::ClusterId;

/// The part of the state that a record, a request or an audit entry belongs to. None belongs to two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// The state that clusters share.
    Shared,
    Cluster(ClusterId),
}

/// The place of a stream in the log of a realm: the number of its last batch, and the term in which it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamPosition {
    /// Number of the last batch; 0 without one.
    pub number: u64,
    /// Number of changes of the owner before that batch.
    pub term: u64,
    /// Number of records of the stream, with that batch.
    pub records: u64,
}

/// Prefix of the word for a cluster, before its number.
const CLUSTER: &str = "cluster-";

/// The word of the shared stream.
const SHARED: &str = "shared";

impl fmt::Display for Stream {
    /// The stream as audit entries name it: `shared`, `cluster-3`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => out.write_str(SHARED),
            Self::Cluster(id) => write!(out, "{CLUSTER}{id}"),
        }
    }
}

/// A text that names no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a stream: `shared`, or `cluster-` and a number")]
pub struct NotAStream;

impl FromStr for Stream {
    type Err = NotAStream;

    fn from_str(text: &str) -> Result<Self, NotAStream> {
        let cluster = || text.strip_prefix(CLUSTER)?.parse().ok().map(|id| Self::Cluster(ClusterId(id)));
        let stream = if text == SHARED { Some(Self::Shared) } else { cluster() };
        // A stream has one spelling: no leading zeros, no sign.
        stream.filter(|stream| stream.to_string() == text).ok_or(NotAStream)
    }
}

impl Serialize for Stream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Stream {
    fn schema_name() -> Cow<'static, str> {
        "Stream".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A chain of the audit log: `shared`, or that of a cluster by its number: `cluster-3`.",
            "type": "string",
            "pattern": "^(shared|cluster-(0|[1-9][0-9]{0,9}))$",
        })
    }
}
