//! What the clusters are called, who may do what, and who is told of events, for those who need to know it without asking the driver.

use std::collections::BTreeMap;

use forewarn_control::ClusterId;
use forewarn_control::shared::{Catalogue, Token, Webhook};
use forewarn_lifecycle::Name;

/// Clusters, tokens and webhooks as they were at one moment; how far webhooks have come may be older. It never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    clusters: BTreeMap<ClusterId, Name>,
    tokens: BTreeMap<u32, Token>,
    webhooks: BTreeMap<u32, Webhook>,
    /// The number that the next token will have.
    pub next_token: u32,
}

impl Roster {
    /// Those of a catalogue.
    #[must_use]
    pub fn of(catalogue: &Catalogue) -> Self {
        Self {
            clusters: catalogue.clusters().map(|(id, name)| (id, name.clone())).collect(),
            tokens: catalogue.tokens().map(|token| (token.number, token.clone())).collect(),
            webhooks: catalogue.webhooks().map(|webhook| (webhook.number, webhook.clone())).collect(),
            next_token: catalogue.next_token(),
        }
    }

    /// Every cluster and its name, in the order in which they were created.
    pub fn clusters(&self) -> impl Iterator<Item = (ClusterId, &Name)> {
        self.clusters.iter().map(|(id, name)| (*id, name))
    }

    /// The cluster of that name.
    #[must_use]
    pub fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        self.clusters().find(|(_, known)| known.as_str() == name).map(|(id, _)| id)
    }

    /// What a cluster is called.
    #[must_use]
    pub fn cluster_name(&self, id: ClusterId) -> Option<&Name> {
        self.clusters.get(&id)
    }

    /// Every token, also those that have expired, in the order in which they were issued.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values()
    }

    /// Every webhook, in the order in which they were added.
    pub fn webhooks(&self) -> impl Iterator<Item = &Webhook> {
        self.webhooks.values()
    }

    /// The webhook of that number.
    #[must_use]
    pub fn webhook(&self, number: u32) -> Option<&Webhook> {
        self.webhooks.get(&number)
    }

    /// The webhook of that name.
    #[must_use]
    pub fn webhook_named(&self, name: &str) -> Option<&Webhook> {
        self.webhooks().find(|webhook| webhook.name.as_str() == name)
    }

    /// The token of that number.
    #[must_use]
    pub fn token(&self, number: u32) -> Option<&Token> {
        self.tokens.get(&number)
    }

    /// The token of that name.
    #[must_use]
    pub fn token_named(&self, name: &str) -> Option<&Token> {
        self.tokens().find(|token| token.name.as_str() == name)
    }
}
