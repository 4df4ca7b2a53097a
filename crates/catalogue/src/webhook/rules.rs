//! The rules of webhooks: what may be added, how far one has come, and back from rows.

use forewarn_lifecycle::{Name, Timestamp};

use super::{Handshake, Progress, Webhook};
use crate::catalogue::Catalogue;
use crate::change::Change;
use crate::command::{NewWebhook, Refusal};
use crate::limits::WEBHOOKS_MAX;
use crate::rows::BadRows;
use crate::token::Reach;

type Decision = Result<Vec<Change>, Refusal>;

impl Catalogue {
    /// Every webhook, in the order in which they were added.
    pub fn webhooks(&self) -> impl Iterator<Item = &Webhook> {
        self.webhooks.values()
    }

    /// The webhook of that number.
    #[must_use]
    pub fn find_webhook(&self, number: u32) -> Option<&Webhook> {
        self.webhooks.get(&number)
    }

    /// The webhook of that name. There are few.
    #[must_use]
    pub fn webhook_named(&self, name: &str) -> Option<&Webhook> {
        self.webhooks().find(|webhook| webhook.name.as_str() == name)
    }

    pub(crate) fn add_webhook(&self, created: Timestamp, new: &NewWebhook) -> Decision {
        let NewWebhook { name, url, schema, filter, authorization, cursor, by } = new.clone();
        crate::decide::check_by(&by)?;
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
        crate::decide::check_number(self.next.webhook, "webhooks")?;
        let (number, handshake, progress) = (self.next.webhook, Handshake::Wanted, Progress::from(cursor));
        let webhook =
            Webhook { number, name, url, schema, filter, authorization, created, by, handshake, progress };
        Ok(vec![Change::WebhookAdded(webhook)])
    }

    pub(crate) fn remove_webhook(&self, name: &Name) -> Decision {
        let webhook =
            self.webhook_named(name.as_str()).ok_or_else(|| Refusal::NoSuchWebhook(name.clone()))?;
        Ok(vec![Change::WebhookRemoved(webhook.number)])
    }

    /// One that is gone wants nothing any more: whoever confirms it has not heard of that yet.
    pub(crate) fn confirm_webhook(&self, number: u32, per_minute: Option<u32>) -> Decision {
        Ok(match self.find_webhook(number).map(|webhook| webhook.handshake) {
            Some(Handshake::Wanted) => vec![Change::WebhookConfirmed { webhook: number, per_minute }],
            Some(Handshake::Done { .. }) | None => Vec::new(),
        })
    }

    /// What would go back, and what is about one that is gone, is left out.
    pub(crate) fn advance_webhooks(&self, reports: &[(u32, Progress)]) -> Decision {
        Refusal::check(reports.len(), WEBHOOKS_MAX, "webhooks")?;
        let is_news = |(number, progress): &&(u32, Progress)| {
            self.find_webhook(*number).is_some_and(|webhook| goes_on(webhook.progress, *progress))
        };
        let advanced = |(webhook, progress): &(u32, Progress)| Change::WebhookAdvanced {
            webhook: *webhook,
            progress: *progress,
        };
        Ok(reports.iter().filter(is_news).map(advanced).collect())
    }

    pub(crate) fn webhook_added(&mut self, webhook: &Webhook) {
        self.next.webhook = self.next.webhook.max(webhook.number.saturating_add(1));
        self.webhooks.insert(webhook.number, webhook.clone());
    }

    pub(crate) fn webhook_removed(&mut self, number: u32) {
        self.webhooks.remove(&number);
    }

    pub(crate) fn webhook_confirmed(&mut self, number: u32, at: Timestamp, per_minute: Option<u32>) {
        if let Some(webhook) = self.webhooks.get_mut(&number) {
            webhook.handshake = Handshake::Done { at, per_minute };
        }
    }

    pub(crate) fn webhook_advanced(&mut self, number: u32, progress: Progress) {
        if let Some(webhook) = self.webhooks.get_mut(&number) {
            webhook.progress = progress;
        }
    }

    pub(crate) fn restore_webhook(&mut self, webhook: Webhook) -> Result<(), BadRows> {
        crate::rows::known(&webhook.number, &self.next.webhook)?;
        crate::rows::new(self.webhook_named(webhook.name.as_str()))?;
        crate::rows::new(self.webhooks.insert(webhook.number, webhook).as_ref())
    }
}

/// Whether the second is what has become of the first, and not the same.
fn goes_on(before: Progress, after: Progress) -> bool {
    after.cursor >= before.cursor && after.lost >= before.lost && after != before
}
