//! Decisions about webhooks, and webhooks from rows.

use std::sync::Arc;

use forewarn_lifecycle::{BadRows, Name, Now, Timestamp};

use super::webhook::{Handshake, Progress, Webhook, WebhookChange, WebhookCommand, WebhookDefinition};
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

    /// The audit log begins anew with entry 1: webhooks get messages about all of its entries.
    pub fn begin_audit_log(&mut self) {
        let begun = |(number, mut webhook): (u32, Arc<Webhook>)| {
            let lost = webhook.progress.lost;
            Arc::make_mut(&mut webhook).progress = Progress { lost, ..Progress::from(0) };
            (number, webhook)
        };
        self.webhooks = std::mem::take(&mut self.webhooks).into_iter().map(begun).collect();
    }

    pub(crate) fn decide_webhook(&self, now: Now, command: &WebhookCommand) -> WebhookDecision {
        match command {
            WebhookCommand::Add(new) => self.add_webhook(now.wall, new),
            WebhookCommand::Remove(name) => self.remove_webhook(name),
            WebhookCommand::Confirm { webhook, per_minute } => {
                Ok(self.confirm_webhook(*webhook, *per_minute))
            }
            WebhookCommand::Advance(reports) => self.advance_webhooks(reports),
        }
    }

    pub(crate) fn evolve_webhook(&mut self, now: Now, change: &WebhookChange) {
        match change {
            WebhookChange::Added(webhook) => {
                self.next.webhook = self.next.webhook.max(webhook.number.saturating_add(1));
                self.webhooks.insert(webhook.number, Arc::clone(webhook));
            }
            WebhookChange::Removed(number) => drop(self.webhooks.remove(number)),
            WebhookChange::Confirmed { webhook, per_minute } => {
                if let Some(webhook) = self.webhooks.get_mut(webhook) {
                    Arc::make_mut(webhook).handshake =
                        Handshake::Done { at: now.wall, per_minute: *per_minute };
                }
            }
            WebhookChange::Advanced { webhook, progress } => {
                if let Some(webhook) = self.webhooks.get_mut(webhook) {
                    Arc::make_mut(webhook).progress = *progress;
                }
            }
        }
    }

    fn add_webhook(&self, created: Timestamp, new: &WebhookDefinition) -> WebhookDecision {
        let WebhookDefinition { name, url, schema, filter, authorization, cursor, by } = new.clone();
        check_by(&by)?;
        if self.webhook_named(name.as_str()).is_some() {
            return Err(Refusal::NameTaken(name));
        }
        let of_nothing = |what| Refusal::WebhookOfNothing { what, name: name.clone() };
        self.check_reach_of_scope(&filter.scope, of_nothing)?;
        if matches!(&filter.kinds, Reach::Only(kinds) if kinds.is_empty()) {
            return Err(of_nothing("types"));
        }
        if authorization.is_some() && !url.is_private() {
            return Err(Refusal::SecretInTheClear(name));
        }
        Refusal::check(self.webhooks.len() + 1, WEBHOOKS_MAX, "webhooks")?;
        check_number(self.next.webhook, "webhooks")?;
        let (number, handshake, progress) = (self.next.webhook, Handshake::Wanted, Progress::from(cursor));
        let webhook =
            Webhook { number, name, url, schema, filter, authorization, created, by, handshake, progress };
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

    /// Ignores progress that would go back, and progress of webhooks that was removed.
    fn advance_webhooks(&self, reports: &[(u32, Progress)]) -> WebhookDecision {
        Refusal::check(reports.len(), WEBHOOKS_MAX, "webhooks")?;
        let is_news = |(number, progress): &&(u32, Progress)| {
            self.find_webhook(*number).is_some_and(|webhook| goes_on(webhook.progress, *progress))
        };
        let advanced = |(webhook, progress): &(u32, Progress)| WebhookChange::Advanced {
            webhook: *webhook,
            progress: *progress,
        };
        Ok(reports.iter().filter(is_news).map(advanced).collect())
    }

    pub(crate) fn restore_webhook(&mut self, webhook: Webhook) -> Result<(), BadRows> {
        check_number_known(&webhook.number, &self.next.webhook)?;
        check_new(self.webhook_named(webhook.name.as_str()))?;
        check_new(self.webhooks.insert(webhook.number, Arc::new(webhook)).as_ref())
    }
}

/// Returns true if the second continues the first, and differs from it.
fn goes_on(before: Progress, after: Progress) -> bool {
    after.cursor >= before.cursor && after.lost >= before.lost && after != before
}
