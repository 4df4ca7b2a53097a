//! Decisions about webhooks, and webhooks from rows.

use std::sync::Arc;

use forewarn_lifecycle::{BadRows, Name, Now, Timestamp};

use super::webhook::{Handshake, Webhook, WebhookChange, WebhookCommand, WebhookDefinition, WebhookFormat};
use crate::limits::WEBHOOKS_MAX;
use crate::receipts::check_by;
use crate::refusal::Refusal;
use crate::rows::{check_new, check_number_known};
use crate::shared::decide::check_number;
use crate::shared::state::SharedState;
use crate::shared::token::Reach;

type WebhookDecision = Result<Vec<WebhookChange>, Refusal>;

impl SharedState {
    /// Every webhook, in the order in which they were added.
    pub fn webhooks(&self) -> impl Iterator<Item = &Webhook> {
        self.webhooks.values().map(Arc::as_ref)
    }

    /// The webhook with a number.
    #[must_use]
    pub fn find_webhook(&self, number: u32) -> Option<&Webhook> {
        self.webhooks.get(&number).map(Arc::as_ref)
    }

    /// The webhook with a name. There are few.
    #[must_use]
    pub fn webhook_named(&self, name: &str) -> Option<&Webhook> {
        self.webhooks().find(|webhook| webhook.name.as_str() == name)
    }

    pub(crate) fn decide_webhook(&self, now: Now, command: &WebhookCommand) -> WebhookDecision {
        match command {
            WebhookCommand::Add(new) => self.add_webhook(now.wall, new),
            WebhookCommand::Remove(name) => self.remove_webhook(name),
            WebhookCommand::Confirm { webhook, per_minute } => {
                Ok(self.confirm_webhook(*webhook, *per_minute))
            }
            WebhookCommand::KeepUndelivered { cluster, messages } => {
                Ok(self.keep_undelivered(*cluster, messages))
            }
            WebhookCommand::AdvanceUndelivered { cluster, webhook, progress } => {
                Ok(self.advance_undelivered(*cluster, *webhook, *progress))
            }
            WebhookCommand::EndUndelivered { cluster, webhook } => {
                Ok(self.end_undelivered(*cluster, *webhook))
            }
        }
    }

    pub(crate) fn apply_to_webhook(&mut self, now: Now, change: &WebhookChange) {
        match change {
            WebhookChange::Added(webhook) | WebhookChange::AddedWithProgress(webhook, _) => {
                self.next.webhook = self.next.webhook.max(webhook.number.saturating_add(1));
                self.webhooks.insert(webhook.number, Arc::clone(webhook));
            }
            WebhookChange::Removed(number) => {
                self.webhooks.remove(number);
                self.forget_undelivered_to(*number);
            }
            WebhookChange::Confirmed { webhook, per_minute } => {
                if let Some(webhook) = self.webhooks.get_mut(webhook) {
                    Arc::make_mut(webhook).handshake =
                        Handshake::Done { at: now.wall, per_minute: *per_minute };
                }
            }
            // The state of each cluster has the progress.
            WebhookChange::Advanced { .. } => {}
            WebhookChange::Undelivered { cluster, messages } => {
                self.undelivered.insert(*cluster, Arc::new(messages.clone()));
            }
            WebhookChange::UndeliveredAdvanced { cluster, webhook, progress } => {
                self.undelivered_advanced(*cluster, *webhook, *progress);
            }
            WebhookChange::Delivered { cluster, webhook } => self.undelivered_ended(*cluster, *webhook),
        }
    }

    fn add_webhook(&self, created: Timestamp, new: &WebhookDefinition) -> WebhookDecision {
        let WebhookDefinition { name, url, format, filter, authorization, by } = new.clone();
        check_by(&by)?;
        if self.webhook_named(name.as_str()).is_some() {
            return Err(Refusal::NameTaken(name));
        }
        let of_nothing =
            |what: &'static str| Refusal::WebhookOfNothing { what: what.into(), name: name.clone() };
        self.check_reach_of_scope(&filter.scope, of_nothing)?;
        if matches!(&filter.kinds, Reach::Only(kinds) if kinds.is_empty()) {
            return Err(of_nothing("types"));
        }
        if format == WebhookFormat::PagerDuty
            && !authorization.as_ref().is_some_and(|key| WebhookFormat::is_routing_key(key.reveal()))
        {
            return Err(Refusal::NoRoutingKey(name));
        }
        if (authorization.is_some() || format.is_url_secret()) && !url.is_private() {
            return Err(Refusal::SecretInTheClear(name));
        }
        Refusal::check(self.webhooks.len() + 1, WEBHOOKS_MAX, "webhooks")?;
        check_number(self.next.webhook, "webhooks")?;
        let handshake = match format.handshake() {
            Some(_) => Handshake::Wanted,
            None => Handshake::Done { at: created, per_minute: format.per_minute_max() },
        };
        let number = self.next.webhook;
        let webhook = Webhook { number, name, url, format, filter, authorization, created, by, handshake };
        Ok(vec![WebhookChange::Added(Arc::new(webhook))])
    }

    fn remove_webhook(&self, name: &Name) -> WebhookDecision {
        let webhook =
            self.webhook_named(name.as_str()).ok_or_else(|| Refusal::NoSuchWebhook(name.clone()))?;
        Ok(vec![WebhookChange::Removed(webhook.number)])
    }

    /// A confirmation of a webhook that was removed changes nothing: it was on its way when the webhook was removed.
    fn confirm_webhook(&self, number: u32, per_minute: Option<u32>) -> Vec<WebhookChange> {
        match self.find_webhook(number).map(|webhook| webhook.handshake) {
            Some(Handshake::Wanted) => vec![WebhookChange::Confirmed { webhook: number, per_minute }],
            Some(Handshake::Done { .. }) | None => Vec::new(),
        }
    }

    pub(crate) fn restore_webhook(&mut self, webhook: Webhook) -> Result<(), BadRows> {
        check_number_known(&webhook.number, &self.next.webhook)?;
        check_new(self.webhook_named(webhook.name.as_str()))?;
        check_new(self.webhooks.insert(webhook.number, Arc::new(webhook)).as_ref())
    }
}
