//! Changes of the shared state.

use forewarn_lifecycle::{Name, Seed};

use crate::command::Site;
use crate::receipts::NewReceipt;
use crate::resource_id::GroupId;
use crate::shared::boot::Boot;
use crate::shared::claim::NewClaim;
use crate::shared::token::Token;
use crate::shared::webhook::WebhookChange;
use crate::stream::{ClusterId, StreamPosition};

/// A change of the state that clusters share. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A cluster was created, and has the group of its site.
    ClusterCreated {
        cluster: ClusterId,
        name: Name,
        /// The secret that its event ids are made of.
        seed: Seed,
        /// Its location and resource group.
        site: Site,
    },
    /// A cluster has a new name.
    ClusterRenamed {
        cluster: ClusterId,
        /// Its name from now on.
        name: Name,
    },
    /// A cluster was removed, with its claims. Tokens that were limited to it and others are limited to the others.
    ClusterRemoved(ClusterId),
    /// A token was issued.
    TokenIssued(Token),
    /// A token was revoked, by number.
    TokenRevoked(u32),
    /// The response to a request was stored.
    ReceiptKept(NewReceipt),
    /// A change of a webhook.
    Webhook(WebhookChange),
    /// The clocks showed the time of this record: they never go back over a restart.
    Clock,
    /// The steady clock belongs to that boot of the computer.
    Booted(Boot),
    /// The batch that begins with this record has that place in the log of a realm.
    Positioned(StreamPosition),
    /// A cluster has these resource groups.
    ClaimsTaken { cluster: ClusterId, claims: Vec<NewClaim> },
    /// A cluster no longer has these resource groups.
    ClaimsReleased { cluster: ClusterId, groups: Vec<GroupId> },
}
