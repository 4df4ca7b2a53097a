//! Unplanned changes of host health: degraded, failed, recovered.

use std::time::Duration;

use forewarn_types::{HostId, MachineId};

use super::draft::{Draft, EventLimit};
use crate::change::Change;
use crate::fleet::{Health, Host};
use crate::limits::FAILURE_EXPECTED_IN_MAX;
use crate::maintenance::{Cause, Maintenance, Withdrawal};
use crate::refusal::Refusal;

impl Draft<'_> {
    /// Announces to each machine of a failing host that it will be moved. A repeated command covers machines that
    /// arrived since, or whose move failed.
    pub(super) fn degrade_host(&mut self, id: HostId, fails_in: Option<Duration>) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        let fails_in = fails_in.unwrap_or(FAILURE_EXPECTED_IN_MAX);
        match host.health {
            Health::Failed => return Err(Refusal::HostFailed(host.name.clone())),
            Health::Degraded | Health::Healthy if fails_in > FAILURE_EXPECTED_IN_MAX => {
                return Err(Refusal::FailureTooFar);
            }
            Health::Degraded => {}
            Health::Healthy => {
                self.changes.push(Change::HealthChanged { host: id, health: Health::Degraded });
            }
        }
        for machine in self.cluster.machines_on(id) {
            if !self.leaves_degraded(machine, id) {
                self.plan(Cause::DegradedHost { host: id, fails_in }, &[machine])?;
            }
        }
        Ok(())
    }

    fn leaves_degraded(&self, machine: MachineId, id: HostId) -> bool {
        self.cluster.pending_of(machine).any(|maintenance| is_degraded(maintenance, id))
    }

    /// Handles the failure of a host in one step: withdraws the events of its degradation and planned work that
    /// concerns no other host, and announces the failure.
    pub(super) fn fail_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Ok(());
        }
        self.changes.push(Change::HealthChanged { host: id, health: Health::Failed });
        self.withdraw_degraded(id, Withdrawal::HostFailed);
        self.withdraw_work(id, host);
        let mut machines = self.cluster.machines_on(id);
        let is_moving = |machine| self.fences(id) && self.cluster.is_moving(machine);
        machines.retain(|machine| !self.is_leaving(*machine, id) && !is_moving(*machine));
        if machines.is_empty() {
            return Ok(());
        }
        self.plan(Cause::FailedHost { host: id, kind: self.cluster.settings.failure }, &machines)
    }

    /// Returns true if an earlier failure of the host is still moving the machine away.
    fn is_leaving(&self, machine: MachineId, id: HostId) -> bool {
        let failed = |pending: &&Maintenance| matches!(pending.plan.cause, Cause::FailedHost { host, .. } if host == id);
        let mut actions =
            self.cluster.pending_of(machine).filter(failed).filter_map(|pending| pending.action(machine));
        actions.any(|action| action.impact.destination().is_some())
    }

    /// A host is healthy again, so no machine has to leave it.
    pub(super) fn recover_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Healthy {
            return Ok(());
        }
        if host.fence.order().is_some() {
            return Err(Refusal::BeingFenced(host.name.clone()));
        }
        self.withdraw_degraded(id, Withdrawal::HostRecovered);
        self.release_fence(id, host);
        self.changes.push(Change::HealthChanged { host: id, health: Health::Healthy });
        Ok(())
    }

    /// Gives a machine that arrived on a degraded or failed host the event that the other machines of the host got.
    pub(super) fn rescue(&mut self, id: MachineId) -> Result<(), Refusal> {
        let host = self.cluster.known_machine(id)?.host;
        self.event_limit = EventLimit::Ignored;
        if self.cluster.known_host(host)?.health == Health::Failed {
            return self.plan(Cause::FailedHost { host, kind: self.cluster.settings.failure }, &[id]);
        }
        self.plan(Cause::DegradedHost { host, fails_in: FAILURE_EXPECTED_IN_MAX }, &[id])
    }

    fn withdraw_degraded(&mut self, id: HostId, why: Withdrawal) {
        let cluster = self.cluster;
        let machines = cluster.machines_on(id).into_iter();
        for maintenance in machines.flat_map(|machine| cluster.waiting_of(machine)) {
            if is_degraded(maintenance, id) {
                self.withdraw_all(maintenance, why);
            }
        }
    }

    /// Withdraws the parts of planned work that concern only machines on this host.
    fn withdraw_work(&mut self, id: HostId, host: &Host) {
        let work = host.work.and_then(|work| self.cluster.maintenance(work));
        let Some(work) = work.filter(|work| work.wait().is_some()) else { return };
        let elsewhere = |machine: &MachineId| {
            let other = self.cluster.machine(*machine).is_some_and(|machine| machine.host != id);
            other && self.cluster.concerns(&work.plan.cause, *machine)
        };
        let over = work.plan.parts.iter().filter(|part| !part.machines.iter().any(elsewhere));
        let tenants: Vec<_> = over.map(|part| part.tenant).collect();
        if !tenants.is_empty() {
            self.withdraw(work, tenants, Withdrawal::HostFailed);
        }
    }
}

fn is_degraded(maintenance: &Maintenance, id: HostId) -> bool {
    matches!(maintenance.plan.cause, Cause::DegradedHost { host, .. } if host == id)
}
