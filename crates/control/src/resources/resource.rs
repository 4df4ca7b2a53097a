//! A resource: what a client has written under an id.

use std::fmt;
use std::sync::Arc;

use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId, Timestamp};
use forewarn_types::base64url;
use serde::{Deserialize, Serialize};

use crate::stream::ClusterId;

/// A resource that a client has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The id, in the spelling of the first write.
    pub id: String,
    pub cluster: ClusterId,
    /// The object of the rules that it stands for, if there is one.
    pub link: Option<Link>,
    pub edition: u64,
    /// Time of the first write.
    pub created: Timestamp,
    /// The body, as JSON.
    pub body: Body,
    /// Notes of the server, as JSON.
    pub notes: Body,
    pub leaving: Leaving,
}

/// The object of the rules that a resource stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Link {
    Machine(MachineId),
    Tenant(TenantId),
    ScaleSet(ScaleSetId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaving {
    #[default]
    Stays,
    /// It goes once nothing of it is left.
    Leaves,
}

/// The bytes of a body. `Debug` does not show them: they may be confidential. Copies share them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body(#[serde(with = "base64url")] pub Arc<[u8]>);

impl Resource {
    /// The key under which it is found: its id in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        key_of(&self.id)
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.id.len() + self.body.0.len() + self.notes.0.len()
    }
}

/// The key of an id: case does not matter.
#[must_use]
pub fn key_of(id: &str) -> String {
    id.to_lowercase()
}

impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Body({} bytes)", self.0.len())
    }
}
