//! Actions whose result is unknown, and the operator's word about them; hosts that need attention.

use forewarn_types::{HostId, MaintenanceId};

use super::draft::Draft;
use crate::action::Report;
use crate::change::Change;
use crate::command::Command;
use crate::fleet::{Fence, HostAttention};
use crate::host_step::Target;
use crate::refusal::Refusal;

impl Draft<'_> {
    /// Records that the result of an action is unknown and that it must not be repeated. A report about an action that
    /// has ended changes nothing.
    pub(super) fn suspend(&mut self, maintenance: MaintenanceId, target: Target) -> Result<(), Refusal> {
        let known = self.cluster.maintenance(maintenance);
        if let Some(known) = known.filter(|known| known.action_on(target).is_some())
            && !known.is_suspended(target)
        {
            self.changes.push(Change::Suspended { maintenance, target });
        }
        Ok(())
    }

    /// Requests all unfinished actions of a maintenance again, except those that wait for the fence of a failed host.
    pub(super) fn retry(&mut self, maintenance: MaintenanceId) -> Result<(), Refusal> {
        let mut barred = None;
        for target in self.unfinished_of(maintenance)? {
            let action = self.cluster.maintenance(maintenance).and_then(|known| known.action_on(target));
            match action.and_then(|action| self.cluster.barred_by(action)) {
                Some(host) => barred = Some(host),
                None => self.changes.push(Change::Retried { maintenance, target }),
            }
        }
        match barred.filter(|_| self.changes.is_empty()) {
            Some(host) => Err(Refusal::NotFenced(self.cluster.known_host(host)?.name.clone())),
            None => Ok(()),
        }
    }

    /// Requests the fence of a host again, or the step on it.
    pub(super) fn retry_host(&mut self, host: HostId) -> Result<(), Refusal> {
        let maintenance = match self.cluster.known_host(host)?.fence {
            Fence::Awaited { order: None } => return self.order_fence(host),
            Fence::Awaited { order: Some(order) } => order,
            Fence::Unneeded => self.step_on(host)?,
            Fence::Confirmed => return Err(Refusal::HostFailed(self.cluster.known_host(host)?.name.clone())),
        };
        self.changes.push(Change::Retried { maintenance, target: Target::Host(host) });
        Ok(())
    }

    /// Counts all unfinished actions of a maintenance as failed.
    pub(super) fn give_up(&mut self, maintenance: MaintenanceId) -> Result<(), Refusal> {
        // Each failure may change what the next one means: decide them one after the other, on a copy.
        let mut copy = self.cluster.clone();
        for target in self.unfinished_of(maintenance)? {
            let failed = Command::Complete { maintenance, target, report: Report::Failed };
            for change in copy.decide(self.now, &failed)? {
                copy.evolve(self.now, &change);
                self.changes.push(change);
            }
        }
        Ok(())
    }

    /// Ends the step on a host by the word of an operator. The order to fence a host can be given up here; only the word
    /// that the machines can no longer write confirms the fence.
    pub(super) fn complete_host(&mut self, host: HostId, report: Report) -> Result<(), Refusal> {
        let known = self.cluster.known_host(host)?;
        let fence = known.fence.order();
        let maintenance = match (report, fence, self.step_on(host)) {
            (Report::Failed, Some(order), _) => order,
            (Report::Done, Some(_), Err(_)) => return Err(Refusal::NotFenced(known.name.clone())),
            (Report::Done, _, step) | (Report::Failed, None, step) => step?,
        };
        self.complete(maintenance, Target::Host(host), report)
    }

    /// An operator has examined a host that needed attention.
    pub(super) fn clear_host(&mut self, host: HostId) -> Result<(), Refusal> {
        if self.cluster.known_host(host)?.attention == HostAttention::Needed {
            self.changes.push(Change::AttentionChanged { host, attention: HostAttention::Unneeded });
        }
        Ok(())
    }

    fn unfinished_of(&self, id: MaintenanceId) -> Result<Vec<Target>, Refusal> {
        let maintenance = self.cluster.maintenance(id).ok_or(Refusal::NoSuchMaintenance)?;
        let targets: Vec<_> = maintenance.actions().map(|action| action.target).collect();
        if targets.is_empty() { Err(Refusal::NothingUnfinished) } else { Ok(targets) }
    }

    /// The maintenance whose step on the host is in progress.
    fn step_on(&self, id: HostId) -> Result<MaintenanceId, Refusal> {
        let host = self.cluster.known_host(id)?;
        let work = host.work.and_then(|work| self.cluster.maintenance(work));
        let step = work.filter(|work| work.action_on(Target::Host(id)).is_some());
        step.map(|work| work.plan.id).ok_or_else(|| Refusal::NoStep(host.name.clone()))
    }
}
