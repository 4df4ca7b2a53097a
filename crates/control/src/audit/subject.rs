//! Search keys of the audit log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stream::Stream;

/// A search key of entries. Clusters are identified by [`cluster_key`](crate::audit::cluster_key).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are names of what it is about")]
pub enum Subject {
    By(String),
    /// Kind of the entry.
    Kind(String),
    Cluster(String),
    /// A tenant of a cluster.
    Tenant {
        cluster: String,
        name: String,
    },
    /// A machine of a cluster, as `tenant/name`.
    Machine {
        cluster: String,
        name: String,
    },
    /// A host of a cluster.
    Host {
        cluster: String,
        name: String,
    },
    /// An event of a cluster.
    Event {
        cluster: String,
        id: String,
    },
    /// A piece of work of a cluster.
    Work {
        cluster: String,
        number: u64,
    },
    /// A rollout of a cluster.
    Rollout {
        cluster: String,
        number: u64,
    },
    /// Entries that were caused by an entry of the same chain; no stream: of the common log.
    Because {
        stream: Option<Stream>,
        number: u64,
    },
}

impl fmt::Display for Subject {
    /// A unique text: `default/machine:web/web_0`, `#1/work:7`, `by:token alice`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(by) => write!(out, "by:{by}"),
            Self::Kind(kind) => write!(out, "kind:{kind}"),
            Self::Cluster(cluster) => write!(out, "cluster:{cluster}"),
            Self::Tenant { cluster, name } => of_cluster(out, cluster, "tenant", name),
            Self::Machine { cluster, name } => of_cluster(out, cluster, "machine", name),
            Self::Host { cluster, name } => of_cluster(out, cluster, "host", name),
            Self::Event { cluster, id } => of_cluster(out, cluster, "event", id),
            Self::Work { cluster, number } => of_cluster(out, cluster, "work", number),
            Self::Rollout { cluster, number } => of_cluster(out, cluster, "rollout", number),
            Self::Because { stream: None, number } => write!(out, "because:{number}"),
            Self::Because { stream: Some(stream), number } => write!(out, "{stream}/because:{number}"),
        }
    }
}

/// A key that is unique within a cluster.
fn of_cluster(
    out: &mut fmt::Formatter<'_>,
    cluster: &str,
    kind: &str,
    which: &dyn fmt::Display,
) -> fmt::Result {
    write!(out, "{cluster}/{kind}:{which}")
}
