//! What the catalogue can be asked, and what it can say no to.

use forewarn_lifecycle::{Name, Seed, Timestamp};

use crate::command::Site;
use crate::receipts::NewReceipt;
use crate::shared::token::{Role, Scope, TokenHash};
use crate::shared::webhook::WebhookCommand;
use crate::stream::ClusterId;

/// A wish. The catalogue answers with the changes it makes, or refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Another cluster.
    CreateCluster {
        /// Its name.
        name: Name,
        /// The secret that its event ids are made of.
        seed: Seed,
        /// Its location and resource group.
        site: Site,
    },
    /// Another name for a cluster.
    RenameCluster {
        /// The cluster.
        cluster: ClusterId,
        /// Its name from now on.
        name: Name,
    },
    /// A cluster goes. Whether it is empty, whoever asks has seen; tokens that are good for nothing else go with it.
    RemoveCluster(ClusterId),
    /// A token is good from now on. It takes the place of one of that name that has expired.
    IssueToken {
        /// [`Catalogue::next_token`](crate::shared::Catalogue::next_token): it is part of what the hash was made of.
        number: u32,
        /// What people call it.
        name: Name,
        /// What its holder may do.
        role: Role,
        /// To what.
        scope: Scope,
        /// Of its whole text.
        hash: TokenHash,
        /// From when on it is good for nothing.
        expires: Option<Timestamp>,
        /// Who issues it.
        by: String,
    },
    /// A token is good no longer.
    RevokeToken(Name),
    /// The answer to a request. The first answer stands.
    KeepReceipt(NewReceipt),
    /// Something that is done with webhooks.
    Webhook(WebhookCommand),
}
