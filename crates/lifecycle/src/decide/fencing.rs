//! Fencing: machines of a failed host start elsewhere only when the old copies can no longer write.
//!
//! The order to fence a host is work of its own, without machines and without events. Nothing holds it, not even the
//! brake: it starts nothing, and everything that protects data waits for it.

use std::collections::BTreeSet;

use forewarn_types::{HostId, MachineId, MaintenanceId, Name};

use super::draft::Draft;
use crate::action::{Impact, Report};
use crate::change::Change;
use crate::fleet::{Fence, Health, Host};
use crate::host_step::Target;
use crate::maintenance::{Cause, Maintenance, Plan, PowerChange, Withdrawal};
use crate::refusal::Refusal;

impl Draft<'_> {
    /// A host has failed, and its machines may still run there. Repeated, it orders the fence again if that has failed.
    pub(super) fn fail_unfenced_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        match (host.health, host.fence) {
            (Health::Failed, Fence::Awaited { order: Some(_) } | Fence::Confirmed) => Ok(()),
            (Health::Failed, Fence::Awaited { order: None } | Fence::Unneeded) => self.order_fence(id),
            (Health::Healthy | Health::Degraded, _) => {
                self.order_fence(id)?;
                self.fail_host(id)
            }
        }
    }

    /// A host has failed, and its machines can no longer run there, by the word of an operator. Confirms the fence of a
    /// host that has failed already, and ends the order to fence it.
    pub(super) fn fail_fenced_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        match (host.health, host.fence) {
            (Health::Failed, Fence::Confirmed) => Ok(()),
            (Health::Failed, Fence::Awaited { order: Some(order) }) => {
                self.complete(order, Target::Host(id), Report::Done)
            }
            (Health::Failed, Fence::Awaited { order: None } | Fence::Unneeded) => {
                self.set_fence(id, Fence::Confirmed);
                Ok(())
            }
            (Health::Healthy | Health::Degraded, _) => {
                self.set_fence(id, Fence::Confirmed);
                self.fail_host(id)
            }
        }
    }

    /// Orders the driver to fence a failed host.
    pub(super) fn order_fence(&mut self, host: HostId) -> Result<(), Refusal> {
        let order = MaintenanceId(self.next.maintenance);
        self.set_fence(host, Fence::Awaited { order: Some(order) });
        self.plan(Cause::Fencing { host }, &[])
    }

    fn set_fence(&mut self, host: HostId, fence: Fence) {
        self.fence = Some((host, fence));
        self.changes.push(Change::FenceChanged { host, fence });
    }

    /// Records the result of the order to fence a host. After a failure, the fence is still awaited.
    pub(super) fn fence_ended(&mut self, maintenance: &Maintenance, report: Report) {
        let Cause::Fencing { host } = maintenance.plan.cause else { return };
        let fence = self.cluster.host(host).map_or(Fence::Unneeded, |host| host.fence);
        if fence.order() == Some(maintenance.plan.id) {
            self.set_fence(
                host,
                match report {
                    Report::Done => Fence::Confirmed,
                    Report::Failed => Fence::Awaited { order: None },
                },
            );
        }
    }

    /// A machine has arrived on a failed host after the fence was confirmed: it may run there, so the host is fenced again.
    pub(super) fn fence_again(&mut self, impact: Impact) -> Result<(), Refusal> {
        let Some(id) = impact.destination() else { return Ok(()) };
        let arrived = self.cluster.host(id);
        if arrived.is_some_and(|host| host.health == Health::Failed && host.fence == Fence::Confirmed) {
            self.order_fence(id)?;
        }
        Ok(())
    }

    /// A host is healthy again: machines that waited for its fence stay.
    pub(super) fn release_fence(&mut self, id: HostId, host: &Host) {
        if host.fence == Fence::Unneeded {
            return;
        }
        let cluster = self.cluster;
        let failed =
            |work: &&Maintenance| matches!(work.plan.cause, Cause::FailedHost { host, .. } if host == id);
        let waiting = host.machines().iter().flat_map(|machine| cluster.waiting_of(*machine)).filter(failed);
        let waiting: BTreeSet<_> = waiting.map(|work| work.plan.id).collect();
        for work in waiting.into_iter().filter_map(|work| cluster.maintenance(work)) {
            self.withdraw_all(work, Withdrawal::HostRecovered);
        }
        self.set_fence(id, Fence::Unneeded);
    }

    /// The failed host on which a machine may still run that this would start elsewhere.
    pub(super) fn unfenced_host(&self, plan: &Plan) -> Option<Name> {
        let moves = match &plan.cause {
            Cause::UserRedeploy
            | Cause::DegradedHost { .. }
            | Cause::FailedHost { .. }
            | Cause::HostReturn { .. } => true,
            Cause::HostWork { work, .. } => work.kind.moves_machines(),
            Cause::Power(PowerChange::Start) => true,
            Cause::Power(PowerChange::Stop | PowerChange::Deallocate)
            | Cause::UserRestart
            | Cause::UserDelete(_)
            | Cause::Reimage(_)
            | Cause::Eviction(_)
            | Cause::Fencing { .. } => false,
        };
        let mut moved = plan.machines().filter(|id| moves && self.cluster.concerns(&plan.cause, *id));
        moved.find_map(|machine| self.unfenced_host_of(machine))
    }

    /// Refuses to move a machine that may still run on a failed host.
    pub(super) fn check_fenced(&self, machine: MachineId) -> Result<(), Refusal> {
        self.unfenced_host_of(machine).map_or(Ok(()), |host| Err(Refusal::NotFenced(host)))
    }

    /// The failed host of a machine whose fence is awaited, also by this decision.
    fn unfenced_host_of(&self, machine: MachineId) -> Option<Name> {
        let id = self.cluster.machine(machine)?.host;
        let host = self.cluster.host(id)?;
        let fence = self.fence.filter(|(changed, _)| *changed == id).map_or(host.fence, |(_, fence)| fence);
        fence.is_awaited().then(|| host.name.clone())
    }

    /// Returns true if this decision fences the host, or has it fenced.
    pub(super) fn fences(&self, id: HostId) -> bool {
        self.fence.is_some_and(|(host, fence)| host == id && fence != Fence::Unneeded)
    }
}
