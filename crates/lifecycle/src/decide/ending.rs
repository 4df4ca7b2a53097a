//! The end of an action, and the withdrawal of work that it makes pointless.

use forewarn_types::{HostId, MachineId, MaintenanceId};

use super::draft::Draft;
use crate::action::{Impact, Report};
use crate::change::Change;
use crate::fleet::EvictionPolicy;
use crate::host_step::Target;
use crate::maintenance::{Cause, Withdrawal};
use crate::refusal::Refusal;
use crate::rollout::{Pause, Rollout};

/// The state in which an action leaves a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Stays,
    Moved(HostId),
    Deallocated,
    Gone,
}

impl Draft<'_> {
    /// Records the end of an action. A report about an unknown action, or a second report, changes nothing.
    pub(super) fn complete(
        &mut self,
        maintenance: MaintenanceId,
        target: Target,
        report: Report,
    ) -> Result<(), Refusal> {
        let Some(known) = self.cluster.maintenance(maintenance) else { return Ok(()) };
        let Some(action) = known.action_on(target) else { return Ok(()) };
        self.changes.push(Change::Completed { maintenance, target, report });
        match (report, target.machine()) {
            (Report::Done, Some(machine)) => {
                self.withdraw_unconcerned(machine, outcome(action.impact))?;
                self.fence_again(action.impact)?;
            }
            (Report::Done, None) => self.fence_ended(known, report),
            (Report::Failed, Some(_)) => self.pause_after_failures(maintenance),
            (Report::Failed, None) => {
                self.pause_after_failures(maintenance);
                self.call_for_attention(target);
                self.fence_ended(known, report);
            }
        }
        self.advance_host(known, target, report);
        Ok(())
    }

    /// Pauses a rollout when as many impacts have failed as its terms permit.
    fn pause_after_failures(&mut self, id: MaintenanceId) {
        let Some(maintenance) = self.cluster.maintenance(id) else { return };
        let Cause::HostWork { rollout, .. } = maintenance.plan.cause else { return };
        if self.cluster.rollout(rollout).is_some_and(Rollout::stops_at_next_failure) {
            self.changes.push(Change::RolloutPaused { rollout, why: Pause::Failures });
        }
    }

    /// Withdraws work that has not started and no longer concerns any machine. A deallocated machine that was waiting
    /// for its deletion needs no notice and is deleted at once.
    pub(super) fn withdraw_unconcerned(
        &mut self,
        machine: MachineId,
        outcome: Outcome,
    ) -> Result<(), Refusal> {
        let Some(tenant) = self.cluster.machine(machine).map(|machine| machine.tenant) else { return Ok(()) };
        let mut delete = false;
        for maintenance in self.cluster.waiting_of(machine) {
            let cause = &maintenance.plan.cause;
            let Some(part) = maintenance.plan.part(tenant) else { continue };
            let others = part.machines.iter().filter(|other| **other != machine);
            let concerned = outcome.leaves_concerned(cause)
                || others.into_iter().any(|other| self.cluster.concerns(cause, *other));
            if !concerned {
                self.withdraw(maintenance, vec![tenant], Withdrawal::Unconcerned);
                delete |= outcome == Outcome::Deallocated && matches!(cause, Cause::UserDelete(_));
            }
        }
        if delete { self.plan(Cause::UserDelete(None), &[machine]) } else { Ok(()) }
    }
}

impl Outcome {
    /// Returns true if work with that cause still concerns the machine.
    fn leaves_concerned(self, cause: &Cause) -> bool {
        match self {
            Self::Stays => true,
            Self::Moved(to) if matches!(cause, Cause::HostReturn { host, .. } if *host == to) => false,
            Self::Moved(to) => cause.hosts().is_empty() || cause.hosts().contains(&to),
            Self::Deallocated | Self::Gone => false,
        }
    }
}

fn outcome(impact: Impact) -> Outcome {
    match impact {
        Impact::Pause { .. }
        | Impact::Migrate { .. }
        | Impact::Reboot { .. }
        | Impact::Redeploy { .. }
        | Impact::Reimage
        | Impact::Start { .. }
        | Impact::Stop
        | Impact::StepAside(_)
        | Impact::Return(_)
        | Impact::OnHost(_) => impact.destination().map_or(Outcome::Stays, Outcome::Moved),
        Impact::Evict(EvictionPolicy::Deallocate) | Impact::Deallocate => Outcome::Deallocated,
        Impact::Evict(EvictionPolicy::Delete) | Impact::Delete => Outcome::Gone,
    }
}
