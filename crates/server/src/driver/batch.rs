//! Decisions that are not in the journal yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::notice::AnnouncedWork;
use forewarn_control::{AuditEntry, Effect, Record};
use forewarn_lifecycle::{Now, TenantId};

use crate::message::PendingReplies;

/// Decisions that are not in the journal yet.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) audit: Vec<Arc<AuditEntry>>,
    pub(super) effects: Vec<Effect>,
    pub(super) publish: BTreeSet<(ClusterId, TenantId)>,
    pub(super) announced: BTreeSet<AnnouncedWork>,
    pub(super) pending: PendingReplies,
    /// Time of the last decision: simulated actions begin then.
    pub(super) decided: Option<Now>,
    /// The snapshot has to be published.
    pub(super) is_visible: bool,
}

impl Batch {
    /// Takes an effect of a record.
    pub(super) fn add(&mut self, effect: Effect) {
        match effect {
            Effect::Announced(id, work) => drop(self.announced.insert((id, work))),
            Effect::Publish(id, tenant) => drop(self.publish.insert((id, tenant))),
            Effect::Unpublish(..)
            | Effect::Perform(..)
            | Effect::Jam(..)
            | Effect::MachineChanged(..)
            | Effect::MachineGone(..)
            | Effect::ClusterCreated(_)
            | Effect::ClusterChanged(_)
            | Effect::ClusterGone(_)
            | Effect::WorkPlanned(_)
            | Effect::WorkFailed(..)
            | Effect::WorkFinished(_) => self.effects.push(effect),
        }
    }
}
