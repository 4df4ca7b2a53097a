//! Commands to the shared state.

use forewarn_lifecycle::{Name, Seed, Timestamp};

use crate::command::Site;
use crate::receipts::NewReceipt;
use crate::resource_id::GroupId;
use crate::shared::claim::NewClaim;
use crate::shared::token::{Role, Scope, TokenHash};
use crate::shared::webhook::WebhookCommand;
use crate::stream::ClusterId;

/// A command to the shared state. It is decided into changes, or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    CreateCluster {
        name: Name,
        /// The secret that its event ids are made of.
        seed: Seed,
        /// Its location and resource group.
        site: Site,
    },
    RenameCluster {
        cluster: ClusterId,
        /// Its name from now on.
        name: Name,
    },
    /// Removes a cluster, which the caller has closed. Tokens that are limited to it are revoked.
    RemoveCluster(ClusterId),
    /// Issues a token. It replaces an expired token of the same name.
    IssueToken {
        /// [`SharedState::next_token`](crate::shared::SharedState::next_token): the number is part of the text that
        /// was hashed.
        number: u32,
        name: Name,
        /// The role of its holder.
        role: Role,
        /// The clusters and tenants that it is limited to.
        scope: Scope,
        /// SHA-256 of its text.
        hash: TokenHash,
        /// Time at which it expires.
        expires: Option<Timestamp>,
        /// The caller that issues it.
        by: String,
    },
    RevokeToken(Name),
    /// Stores the response to a request. The first response stands.
    KeepReceipt(NewReceipt),
    /// A command to webhooks.
    Webhook(WebhookCommand),
    /// Gives resource groups to a cluster: all of them, or none.
    TakeClaims {
        cluster: ClusterId,
        claims: Vec<NewClaim>,
    },
    /// Takes resource groups from the cluster that has them.
    ReleaseClaims {
        cluster: ClusterId,
        groups: Vec<GroupId>,
    },
}
