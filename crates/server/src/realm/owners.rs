//! The owners of clusters, as a server knows them.

use std::collections::BTreeMap;

use forewarn_control::ClusterId;
use forewarn_lifecycle::Name;

/// The owner of a cluster, and the term of its ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterOwner {
    pub(crate) server: Name,
    pub(crate) term: u64,
}

/// The owners of all clusters, as this server knows them.
pub(crate) type Owners = BTreeMap<ClusterId, ClusterOwner>;
