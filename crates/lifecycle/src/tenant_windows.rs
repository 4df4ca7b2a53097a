//! Windows of tenants: hours in which work on hosts may interrupt the machines of a tenant.
//!
//! They delay groups of rollouts only. Operations of owners, evictions, and work on degraded or failed hosts do not
//! wait for them. They are kept beside the tenants, so that a tenant without windows needs no memory for them.

use std::sync::Arc;

use forewarn_types::{ScaleSetId, TenantId};
use serde::{Deserialize, Serialize};

use crate::window::Window;

/// The owner of windows: a tenant, or a scale set for all its placement groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WindowOwner {
    /// A tenant that is no placement group.
    Tenant(TenantId),
    /// A scale set.
    ScaleSet(ScaleSetId),
}

/// The windows of one owner; at least one.
pub(crate) type OwnedWindows = Arc<[Window]>;
