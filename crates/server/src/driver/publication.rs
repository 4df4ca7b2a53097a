//! Publication: the snapshot, and the documents that VMs have read, follow what has become durable.

use std::sync::Arc;

use forewarn_control::Effect;

use super::Driver;
use super::batch::Batch;
use crate::realm_log::realm_revision;
use crate::role::RealmScope;

impl Driver {
    /// Adds an effect to the batch. Effects on private runtime state take place at once.
    pub(super) fn prepare(&mut self, effect: Effect) {
        if let Effect::Jam(_, machine) = effect {
            self.runtime.jammed.insert(machine);
        } else {
            self.batch.add(effect);
        }
    }

    /// Publishes a batch that is durable: first the snapshot, from which the metadata endpoint makes documents for VMs
    /// that poll for the first time, then the documents of those that have polled.
    pub(super) fn publish_batch(&mut self, batch: &mut Batch) {
        let changes = std::mem::take(&mut batch.changes);
        for effect in std::mem::take(&mut batch.work) {
            self.runtime.follow_work(&effect);
            if let Effect::WorkFailed(..) = effect {
                self.context.broadcasts.count_failed_action();
            }
        }
        if !batch.records.is_empty() || !batch.audit.is_empty() || batch.is_visible {
            let snapshot = self.context.broadcasts.snapshot.load();
            if let Some(former) = snapshot.state.cluster(self.id) {
                self.runtime.publication.count_changes(&changes, former, &self.state);
            }
            self.publish_snapshot();
        }
        self.runtime.publication.publish_changes(&self.context.broadcasts, changes);
    }

    /// Publishes the whole state: after a start, or after the journal was opened again.
    pub(super) fn publish_all(&mut self) {
        self.runtime.revision += 1;
        self.publish_snapshot();
        self.runtime.publication.publish_all(&self.context.broadcasts, &self.context.clock);
    }

    /// Publishes the state for readers.
    pub(super) fn publish_snapshot(&mut self) {
        if self.runtime.scope == RealmScope::Realm {
            self.runtime.revision = realm_revision(self.state.log_number());
        }
        let runtime = Arc::new(self.runtime.view(self.journal.role(), self.audit_end.number));
        self.context.broadcasts.publish(|snapshot| snapshot.update_cluster(self.id, &self.state, &runtime));
        if let Some((_, replies)) =
            self.logged_replies.take_if(|(number, _)| *number <= self.state.log_number())
        {
            self.replies.extend(replies);
        }
    }
}
