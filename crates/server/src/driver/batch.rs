//! Decisions that are not in the journal yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Effect, Record};
use forewarn_lifecycle::{Action, MaintenanceId, Now};

use crate::message::PendingReplies;
use crate::publication::PublicationChanges;

/// Decisions that are not in the journal yet.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) audit: Vec<Arc<AuditEntry>>,
    pub(super) changes: PublicationChanges,
    /// Effects on planned work.
    pub(super) work: Vec<Effect>,
    pub(super) actions: Vec<Action>,
    pub(super) announced: BTreeSet<MaintenanceId>,
    pub(super) pending: PendingReplies,
    /// Time of the last decision: simulated actions begin then.
    pub(super) decided: Option<Now>,
    /// The snapshot has to be published.
    pub(super) is_visible: bool,
    /// The cluster may have claims that it does not use.
    pub(super) claims_changed: bool,
}

impl Batch {
    /// Returns true if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.audit.is_empty()
    }

    /// Takes an effect of a record.
    pub(super) fn add(&mut self, effect: Effect) {
        match effect {
            Effect::Announced(_, work) => drop(self.announced.insert(work)),
            Effect::Publish(_, tenant) | Effect::Unpublish(_, tenant) => {
                self.changes.tenants.insert(tenant);
            }
            Effect::MachineChanged(..) => self.changes.names = true,
            Effect::MachineGone(_, machine) => self.changes.gone_machines.push(machine),
            Effect::Perform(_, action) => self.actions.push(action),
            Effect::ClaimsChanged(_) => self.claims_changed = true,
            Effect::WorkPlanned(_) | Effect::WorkFailed(..) | Effect::WorkFinished(_) => {
                self.work.push(effect);
            }
            // The driver prepares the first; the others are effects of the shared stream.
            Effect::Jam(..)
            | Effect::ClusterCreated(_)
            | Effect::ClusterChanged(_)
            | Effect::ClusterClosed(_)
            | Effect::ClusterGone(_) => {}
        }
    }
}
