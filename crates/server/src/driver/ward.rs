//! What the driver has of one cluster besides what is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_hypervisor::Pretend;
use forewarn_lifecycle::{MachineId, MaintenanceId, TenantId};

use super::endings::Endings;
use super::listing::Listed;
use crate::published::Slot;

/// What of one cluster can be made anew from what is kept, or is good for as long as the process lives.
#[derive(Default)]
pub(super) struct Ward {
    pub(super) pretend: Pretend,
    /// Pretend machines for which the next thing fails.
    pub(super) jammed: BTreeSet<MachineId>,
    /// What programs are busy with: nothing is ordered twice at a time.
    pub(super) errands: BTreeSet<(MaintenanceId, MachineId)>,
    /// Why some of them have to be ordered again.
    pub(super) troubles: BTreeMap<(MaintenanceId, MachineId), String>,
    pub(super) slots: BTreeMap<TenantId, Arc<Slot>>,
    pub(super) listed: BTreeMap<MachineId, Listed>,
    pub(super) endings: Endings,
}
