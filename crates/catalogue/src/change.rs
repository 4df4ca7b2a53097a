//! What has been decided. The journal holds these, each with its time.

use forewarn_lifecycle::{Name, Seed};

use crate::cluster::ClusterId;
use crate::receipt::Answer;
use crate::token::Token;
use crate::webhook::{Progress, Webhook};

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
    /// A webhook is told of what happens from now on, once it has confirmed that it wants to be.
    WebhookAdded(Webhook),
    /// A webhook is told nothing any more, and forgotten.
    WebhookRemoved(u32),
    /// A webhook wants to be told, so often a minute at most.
    WebhookConfirmed { webhook: u32, per_minute: Option<u32> },
    /// A webhook has been told that far.
    WebhookAdvanced { webhook: u32, progress: Progress },
}
