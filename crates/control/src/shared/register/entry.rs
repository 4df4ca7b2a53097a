//! An entry: what a client has written under an id.

use std::fmt;
use std::sync::Arc;

use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId, Timestamp};
use forewarn_types::base64url;
use serde::{Deserialize, Serialize};

use crate::shared::cluster::ClusterId;

/// What a client has written under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id in the spelling of whoever wrote it first.
    pub id: String,
    /// The cluster in which it is.
    pub cluster: ClusterId,
    /// What the rules know of it; nothing, if they know nothing.
    pub link: Option<Link>,
    /// How often it was written.
    pub edition: u64,
    /// When it was first written.
    pub created: Timestamp,
    /// What was written, as JSON.
    pub body: Body,
    /// What the server has noted of it, as JSON.
    pub notes: Body,
    /// Whether it goes, once nothing of it is left.
    pub leaving: Leaving,
}

/// What an entry is in the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Link {
    /// A machine.
    Machine(MachineId),
    /// A tenant.
    Tenant(TenantId),
    /// A scale set.
    ScaleSet(ScaleSetId),
}

/// Whether an entry goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaving {
    /// It stays.
    #[default]
    Stays,
    /// It goes, once nothing of it is left.
    Leaves,
}

/// The bytes of what was written. They may hold what is not for everybody, and do not show themselves; copies share them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body(#[serde(with = "base64url")] pub Arc<[u8]>);

impl Entry {
    /// Under what it is found: its id in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        key_of(&self.id)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.id.len() + self.body.0.len() + self.notes.0.len()
    }
}

/// The key of an id: case does not matter.
pub(crate) fn key_of(id: &str) -> String {
    id.to_lowercase()
}

impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Body({} bytes)", self.0.len())
    }
}
