//! What has been decided. The journal holds these, each with its time.

use forewarn_lifecycle::{Name, Seed};

use crate::shared::cluster::ClusterId;
use crate::shared::receipt::Answer;
use crate::shared::register::Filed;
use crate::shared::token::Token;
use crate::shared::webhook::WebhookChange;

/// One step of the catalogue. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the step sets")]
pub enum Change {
    /// There is another cluster; its event ids are made of that secret.
    ClusterCreated { cluster: ClusterId, name: Name, seed: Seed },
    /// A cluster is called otherwise.
    ClusterRenamed { cluster: ClusterId, name: Name },
    /// A cluster is gone. Tokens that were limited to it and others are limited to the others.
    ClusterRemoved(ClusterId),
    /// A token is good from now on.
    TokenIssued(Token),
    /// A token is good no longer, and forgotten.
    TokenRevoked(u32),
    /// A request was answered so.
    ReceiptKept { by: String, key: String, fingerprint: [u8; 32], answer: Answer },
    /// A step of the register.
    Filed(Filed),
    /// A step of a webhook.
    Webhook(WebhookChange),
}
