//! Results of finished work, for callers that wait for it.
//!
//! The rules forget finished work. This remembers the last results, and is lost with the process.

use std::sync::Arc;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};
use forewarn_lifecycle::{MaintenanceId, Name};

use crate::effect::{Effect, FinishedWork, PlannedWork};
use crate::view::{Ending, FailureView};

/// Results that are remembered.
const REMEMBERED_MAX: usize = 4_096;

/// Results of the work of one cluster that has finished lately.
#[derive(Clone, Debug, Default)]
pub struct RecentOutcomes {
    finished: PagedMap<MaintenanceId, Arc<WorkOutcome>>,
    /// Tenants of work that is not finished.
    tenants: PagedMap<MaintenanceId, Arc<[Name]>>,
    /// Work that is not finished and has failed for a machine.
    failing: PagedSet<MaintenanceId>,
}

/// Result of some work.
#[derive(Clone, Debug)]
pub struct WorkOutcome {
    pub ending: Ending,
    /// Machines for which it failed, each with the name of its tenant: the first of each tenant.
    pub failures: Vec<(Name, FailureView)>,
    /// Names of its tenants, which may be gone; of scale sets for their placement groups.
    pub tenants: Arc<[Name]>,
}

impl RecentOutcomes {
    /// The result of some work, if it is finished and remembered.
    #[must_use]
    pub fn of(&self, work: MaintenanceId) -> Option<&WorkOutcome> {
        self.finished.get(&work).map(|outcome| &**outcome)
    }

    /// Takes note of an effect on the work of this cluster.
    pub fn follow(&mut self, effect: &Effect) {
        if let Effect::WorkPlanned(PlannedWork { work, tenants, .. }) = effect {
            self.tenants.insert(*work, tenants.as_slice().into());
        } else if let Effect::WorkFailed(_, work) = effect {
            self.failing.insert(*work);
        } else if let Effect::WorkFinished(finished) = effect {
            self.finish(finished);
        }
    }

    fn finish(&mut self, FinishedWork { work, ending, failures, .. }: &FinishedWork) {
        // A failure before a restart is known by its reason only.
        let has_failed = self.failing.remove(work) || !failures.is_empty();
        let ending = if has_failed { Ending::Failed } else { *ending };
        let tenants = self.tenants.remove(work).unwrap_or_default();
        let outcome = WorkOutcome { ending, failures: failures.clone(), tenants };
        self.finished.insert(*work, Arc::new(outcome));
        if self.finished.len() > REMEMBERED_MAX {
            let oldest = self.finished.first().map(|(work, _)| *work);
            oldest.into_iter().for_each(|work| drop(self.finished.remove(&work)));
        }
    }
}
