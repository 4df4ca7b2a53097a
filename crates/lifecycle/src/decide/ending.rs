//! An action has ended, and takes along what it makes pointless.

use forewarn_types::{HostId, MachineId, MaintenanceId};

use super::draft::Draft;
use crate::change::Change;
use crate::command::Refusal;
use crate::fleet::EvictionPolicy;
use crate::maintenance::{Cause, Impact, Report, Withdrawal};
use crate::rollout::{Pause, Rollout};

/// What has become of a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Moved(HostId),
    Deallocated,
    Gone,
}

impl Draft<'_> {
    /// An action was reported as ended. A report of something unknown, or a second one, changes nothing.
    pub(super) fn complete(
        &mut self,
        maintenance: MaintenanceId,
        machine: MachineId,
        report: Report,
    ) -> Result<(), Refusal> {
        let known = self.cluster.maintenance(maintenance);
        let Some(action) = known.and_then(|known| known.action(machine)) else { return Ok(()) };
        self.changes.push(Change::Completed { maintenance, machine, report });
        match report {
            Report::Done => self.take_along(machine, fate(action.impact)),
            Report::Failed => {
                self.stop_if_enough(maintenance);
                Ok(())
            }
        }
    }

    /// A rollout pauses itself when as many impacts have failed as its terms permit.
    fn stop_if_enough(&mut self, id: MaintenanceId) {
        let Some(maintenance) = self.cluster.maintenance(id) else { return };
        let Cause::HostWork { rollout, .. } = maintenance.plan.cause else { return };
        if self.cluster.rollout(rollout).is_some_and(Rollout::stops_at_next_failure) {
            self.changes.push(Change::RolloutPaused { rollout, why: Pause::Failures });
        }
    }

    /// Withdraws what has not started and concerns nobody any more. A machine that is off and was to be deleted has no one
    /// left to warn: it is deleted at once.
    pub(super) fn take_along(&mut self, machine: MachineId, fate: Fate) -> Result<(), Refusal> {
        let Some(tenant) = self.cluster.machine(machine).map(|machine| machine.tenant) else { return Ok(()) };
        let mut delete = false;
        for maintenance in self.cluster.waiting_of(machine) {
            let cause = &maintenance.plan.cause;
            let Some(part) = maintenance.plan.part(tenant) else { continue };
            let others = part.machines.iter().filter(|other| **other != machine);
            let concerned = fate.leaves_concerned(cause)
                || others.into_iter().any(|other| self.cluster.concerns(cause, *other));
            if !concerned {
                self.withdraw(maintenance, vec![tenant], Withdrawal::Unconcerned);
                delete |= fate == Fate::Deallocated && matches!(cause, Cause::UserDelete(_));
            }
        }
        if delete { self.plan(Cause::UserDelete(None), &[machine]) } else { Ok(()) }
    }
}

impl Fate {
    /// Whether the machine is still concerned by something planned for that cause.
    fn leaves_concerned(self, cause: &Cause) -> bool {
        match self {
            Self::Stays => true,
            Self::Moved(to) => cause.hosts().is_empty() || cause.hosts().contains(&to),
            Self::Deallocated | Self::Gone => false,
        }
    }
}

fn fate(impact: Impact) -> Fate {
    match impact {
        Impact::Pause { .. }
        | Impact::Migrate { .. }
        | Impact::Reboot { .. }
        | Impact::Redeploy { .. }
        | Impact::Reimage
        | Impact::Start { .. }
        | Impact::Stop => impact.destination().map_or(Fate::Stays, Fate::Moved),
        Impact::Evict(EvictionPolicy::Deallocate) | Impact::Deallocate => Fate::Deallocated,
        Impact::Evict(EvictionPolicy::Delete) | Impact::Delete => Fate::Gone,
    }
}
