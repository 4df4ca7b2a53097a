//! Claims: each resource group belongs to one cluster.
//!
//! A cluster takes a claim before it begins to use a group, and releases it after it no longer uses it: each with a
//! change of the shared state. So a crash leaves a claim too many at most, never one too few.

use serde::{Deserialize, Serialize};

use crate::command::Site;
use crate::resource_id::GroupId;
use crate::stream::ClusterId;

/// A resource group and the cluster that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub cluster: ClusterId,
    /// The group, as it was spelled first.
    pub group: GroupId,
    pub location: String,
}

/// A resource group that a cluster is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    pub group: GroupId,
    pub location: String,
}

impl NewClaim {
    /// The claim of the group of a site.
    #[must_use]
    pub fn of_site(site: &Site) -> Self {
        Self { group: GroupId::of_site(site), location: site.location.clone() }
    }
}
