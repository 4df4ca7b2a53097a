//! Decisions about messages of removed clusters that webhooks have not got yet, and these messages from rows.
//!
//! The progress of a webhook in a cluster is part of the state of the cluster. When the cluster is removed, that progress
//! moves to the shared state, with the site that the messages name, until everything is delivered: a removal does not
//! wait for receivers. The audit log of the cluster stays readable.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_lifecycle::BadRows;

use crate::limits::CLUSTERS_UNDELIVERED_MAX;
use crate::rows::{check_new, check_number_known};
use crate::shared::state::SharedState;
use crate::shared::webhook::{Progress, UndeliveredMessages, Webhook, WebhookChange};
use crate::stream::ClusterId;

impl SharedState {
    /// Removed clusters whose messages are not all delivered.
    pub fn undelivered(&self) -> impl Iterator<Item = (ClusterId, &UndeliveredMessages)> {
        self.undelivered.iter().map(|(id, messages)| (*id, messages.as_ref()))
    }

    /// The messages of a removed cluster. None if all are delivered.
    #[must_use]
    pub fn undelivered_of(&self, cluster: ClusterId) -> Option<&UndeliveredMessages> {
        self.undelivered.get(&cluster).map(Arc::as_ref)
    }

    /// Returns true if the messages of no other removed cluster are stored.
    #[must_use]
    pub fn is_undelivered_full(&self) -> bool {
        self.undelivered.len() >= CLUSTERS_UNDELIVERED_MAX
    }

    /// Progress of webhooks that were removed is left out, and all of it if too many clusters have some.
    pub(super) fn keep_undelivered(
        &self,
        cluster: ClusterId,
        messages: &UndeliveredMessages,
    ) -> Vec<WebhookChange> {
        let includes = |webhook: &Webhook| webhook.filter.scope.clusters.includes(&cluster);
        let known =
            messages.progress.iter().filter(|(number, _)| self.find_webhook(*number).is_some_and(includes));
        let progress: Vec<_> = known.copied().collect::<BTreeMap<_, _>>().into_iter().collect();
        let is_removed = cluster < self.next_cluster() && self.cluster_name(cluster).is_none();
        let is_new = is_removed && self.undelivered_of(cluster).is_none();
        if !is_new || progress.is_empty() || self.is_undelivered_full() {
            return Vec::new();
        }
        let messages = UndeliveredMessages { site: messages.site.clone(), progress };
        vec![WebhookChange::Undelivered { cluster, messages }]
    }

    /// Progress that would go back is ignored.
    pub(super) fn advance_undelivered(
        &self,
        cluster: ClusterId,
        webhook: u32,
        progress: Progress,
    ) -> Vec<WebhookChange> {
        match self.undelivered_of(cluster).and_then(|messages| messages.progress_of(webhook)) {
            Some(former) if progress.continues(former) => {
                vec![WebhookChange::UndeliveredAdvanced { cluster, webhook, progress }]
            }
            Some(_) | None => Vec::new(),
        }
    }

    pub(super) fn end_undelivered(&self, cluster: ClusterId, webhook: u32) -> Vec<WebhookChange> {
        let found = self.undelivered_of(cluster).and_then(|messages| messages.progress_of(webhook));
        found.map(|_| WebhookChange::Delivered { cluster, webhook }).into_iter().collect()
    }

    pub(super) fn undelivered_advanced(&mut self, cluster: ClusterId, webhook: u32, progress: Progress) {
        if let Some(messages) = self.undelivered.get_mut(&cluster) {
            let all = &mut Arc::make_mut(messages).progress;
            all.iter_mut().filter(|(number, _)| *number == webhook).for_each(|(_, known)| *known = progress);
        }
    }

    /// A webhook has got all messages of a removed cluster.
    pub(super) fn undelivered_ended(&mut self, cluster: ClusterId, webhook: u32) {
        let Some(messages) = self.undelivered.get_mut(&cluster) else { return };
        let messages = Arc::make_mut(messages);
        messages.progress.retain(|(number, _)| *number != webhook);
        if messages.progress.is_empty() {
            self.undelivered.remove(&cluster);
        }
    }

    /// A webhook gets no more messages of removed clusters.
    pub(super) fn forget_undelivered_to(&mut self, webhook: u32) {
        let concerned = self.undelivered().filter(|(_, messages)| messages.progress_of(webhook).is_some());
        let clusters: Vec<_> = concerned.map(|(cluster, _)| cluster).collect();
        clusters.into_iter().for_each(|cluster| self.undelivered_ended(cluster, webhook));
    }

    pub(super) fn restore_undelivered(
        &mut self,
        cluster: ClusterId,
        messages: UndeliveredMessages,
    ) -> Result<(), BadRows> {
        check_number_known(&cluster.0, &self.next.cluster)?;
        if self.cluster_name(cluster).is_some() {
            return Err(BadRows("messages of a removed cluster are of one that is there"));
        }
        if messages.progress.is_empty() || !messages.progress.is_sorted_by(|one, next| one.0 < next.0) {
            return Err(BadRows("progress in a removed cluster is not in order"));
        }
        if !messages.progress.iter().all(|(webhook, _)| self.find_webhook(*webhook).is_some()) {
            return Err(BadRows("messages of a removed cluster are for a webhook that is not there"));
        }
        check_new(self.undelivered.insert(cluster, Arc::new(messages)).as_ref())
    }
}
