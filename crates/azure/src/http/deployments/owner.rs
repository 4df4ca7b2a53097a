//! The owner of a deployment: all clients without a limit to tenants, or one token with such a limit.
//!
//! A token that is limited to tenants has deployments of its own. Names are often those of template files, so two teams
//! use the same ones; neither replaces the deployments of the other, nor learns of them.

use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::shared::Role;
use forewarn_control::{Denied, Permit};

use crate::ArmError;
use crate::http::errors;

/// The owner of deployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Every client that is not limited to tenants.
    Unlimited,
    /// The token with that number.
    Token(u32),
}

const TOKENS: &str = "tokens";

impl Owner {
    /// The owner of the deployments that a client may see; it must have a role.
    pub(super) fn of(permit: &Permit, needs: Role) -> Result<Self, ArmError> {
        permit.check_role(needs).map_err(|denied| errors::of_denied(&denied))?;
        match permit.token {
            _ if permit.scope.tenants.is_all() => Ok(Self::Unlimited),
            Some(number) => Ok(Self::Token(number)),
            None => Err(errors::of_denied(&Denied::Limited)),
        }
    }

    /// The id under which a deployment is stored.
    pub(super) fn stored_id(self, group: &GroupId, name: &str) -> ResourceId {
        let id = group.resource("Microsoft.Resources", "deployments", name);
        match self {
            Self::Unlimited => id,
            Self::Token(number) => id.child(TOKENS, &number.to_string()),
        }
    }

    /// Returns true if a stored deployment is one of this owner.
    pub(super) fn owns(self, stored: &ResourceId) -> bool {
        *stored == self.stored_id(&stored.group, shown_id(stored).name())
    }
}

/// The id of a deployment as its owner sees it.
pub(super) fn shown_id(stored: &ResourceId) -> ResourceId {
    ResourceId { parts: stored.parts.iter().take(1).cloned().collect(), ..stored.clone() }
}
