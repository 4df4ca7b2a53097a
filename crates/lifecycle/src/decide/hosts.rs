//! Work on hosts: planned over many, group by group; and what cannot be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::draft::{Crowding, Draft};
use crate::change::Change;
use crate::command::Refusal;
use crate::fleet::{Health, Host};
use crate::ids::{HostId, MachineId, RolloutId, TenantId, UpdateDomain};
use crate::limits::{
    EVENTS_PER_TENANT_MAX, FAILURE_EXPECTED_IN_MAX, HOSTS_PER_ROLLOUT_MAX, HOSTS_TRIED_PER_GROUP_MAX,
    MACHINES_PER_GROUP_MAX, RESOURCES_PER_EVENT_MAX, ROLLOUTS_MAX,
};
use crate::maintenance::{Cause, HostWork, Maintenance, Stage, Withdrawal};
use crate::tenant::{Work, WorkKind};

/// Hosts that may be worked on together: no tenant has two update domains on them.
#[derive(Default)]
struct Group {
    hosts: Vec<HostId>,
    machines: Vec<MachineId>,
    tenants: BTreeMap<TenantId, (UpdateDomain, usize)>,
}

impl Draft<'_> {
    /// Accepts work on hosts, and announces the first group if it may be announced now.
    pub(super) fn rollout(&mut self, work: HostWork, named: &[HostId]) -> Result<(), Refusal> {
        if named.is_empty() {
            return Err(Refusal::NoHosts);
        }
        Refusal::check(named.len(), HOSTS_PER_ROLLOUT_MAX, "hosts in a rollout")?;
        Refusal::check(self.cluster.rollouts.len() + 1, ROLLOUTS_MAX, "rollouts at once")?;
        let mut seen = BTreeSet::new();
        let hosts: Vec<_> = named.iter().copied().filter(|id| seen.insert(*id)).collect();
        hosts.iter().try_for_each(|id| self.check_workable(work, *id))?;
        let rollout = RolloutId(self.next.rollout);
        self.changes.push(Change::RolloutPlanned { rollout, work, hosts: hosts.clone() });
        self.announce_group(rollout, work, &hosts)
    }

    fn check_workable(&self, work: HostWork, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Err(Refusal::HostFailed(host.name.clone()));
        }
        if host.rollout.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        if work != HostWork::Migration {
            return Ok(());
        }
        let stuck = self.cluster.machines_on(id).into_iter().find(|machine| !self.can_leave(*machine, &[id]));
        match stuck.and_then(|machine| self.cluster.machine(machine)) {
            Some(machine) => Err(Refusal::NoHost(machine.name.clone())),
            None => Ok(()),
        }
    }

    /// A rollout goes on, waits, or is over.
    pub(super) fn advance(&mut self, id: RolloutId) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        if rollout.waiting.is_empty() {
            self.changes.push(Change::RolloutEnded(id));
            return Ok(());
        }
        self.announce_group(id, rollout.work, &rollout.waiting)
    }

    /// Announces as many of the waiting hosts as may be worked on together, beside what is planned already.
    fn announce_group(
        &mut self,
        rollout: RolloutId,
        work: HostWork,
        waiting: &[HostId],
    ) -> Result<(), Refusal> {
        let mut group = Group::default();
        let waiting = &waiting[..waiting.len().min(HOSTS_TRIED_PER_GROUP_MAX)];
        let mut avoid = waiting.to_vec();
        avoid.sort_unstable();
        for id in waiting {
            if work != HostWork::Migration || self.can_be_emptied(*id, &avoid) {
                self.join(&mut group, *id);
            }
        }
        // Hosts that can only take each other's machines go one by one.
        for id in waiting.iter().filter(|_| work == HostWork::Migration) {
            if group.hosts.is_empty() && self.can_be_emptied(*id, &[*id]) {
                self.join(&mut group, *id);
            }
        }
        if group.hosts.is_empty() {
            self.changes.push(Change::RolloutWaits(rollout));
            return Ok(());
        }
        group.hosts.sort_unstable();
        group.machines.sort_unstable();
        self.plan(Cause::HostWork { rollout, work, hosts: group.hosts }, &group.machines)
    }

    /// Adds a host to a group, if it can join it now: it has not failed, nobody is on the way to it, and each of its tenants
    /// can see one more event and has only this update domain in the group and in other planned work.
    fn join(&self, group: &mut Group, id: HostId) {
        let machines = self.cluster.machines_on(id);
        let failed = self.cluster.host(id).is_none_or(|host| host.health == Health::Failed);
        let full = group.machines.len() + machines.len() > MACHINES_PER_GROUP_MAX;
        if failed || full || self.cluster.expects_arrivals(id) {
            return;
        }
        let mut joined = BTreeMap::new();
        for machine in machines.iter().filter_map(|id| self.cluster.machine(*id)) {
            let tenant = machine.tenant;
            let present = joined.get(&tenant).or_else(|| group.tenants.get(&tenant)).copied();
            let (domain, count) = present.unwrap_or((machine.update_domain, 0));
            if domain != machine.update_domain || count == RESOURCES_PER_EVENT_MAX {
                return;
            }
            joined.insert(tenant, (domain, count + 1));
        }
        if joined.iter().all(|(tenant, (domain, _))| self.can_be_told(*tenant, *domain)) {
            group.tenants.extend(joined);
            group.machines.extend(machines);
            group.hosts.push(id);
        }
    }

    /// Whether host work in that update domain of a tenant may be announced.
    fn can_be_told(&self, tenant: TenantId, domain: UpdateDomain) -> bool {
        let Some(tenant) = self.cluster.tenant(tenant) else { return true };
        let elsewhere = |work: &Work| work.kind == WorkKind::HostWork && work.update_domain != domain;
        tenant.events().len() < EVENTS_PER_TENANT_MAX && !tenant.works().iter().any(elsewhere)
    }

    /// Whether every machine of a host can be moved elsewhere.
    fn can_be_emptied(&self, id: HostId, avoid: &[HostId]) -> bool {
        self.cluster.machines_on(id).into_iter().all(|machine| self.can_leave(machine, avoid))
    }

    fn can_leave(&self, machine: MachineId, avoid: &[HostId]) -> bool {
        let machine = self.cluster.machine(machine);
        machine.is_none_or(|machine| self.cluster.place(machine, avoid, &[]).is_some())
    }

    /// No further host; what has started goes on.
    pub(super) fn cancel_rollout(&mut self, id: RolloutId) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        if let Some(current) = rollout.current.and_then(|id| self.cluster.maintenance(id))
            && matches!(current.stage, Stage::Waiting(_))
        {
            self.withdraw_all(current, Withdrawal::Cancelled);
        }
        self.changes.push(Change::RolloutEnded(id));
        Ok(())
    }

    /// A host is expected to fail: each of its machines is told, and moved when it is ready. Said again, it is for those that
    /// came since, or whose move failed.
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

    /// A host has failed: what was announced for its degradation, and planned work that is about no other host, is withdrawn,
    /// and the failure appears, in one step.
    pub(super) fn fail_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Ok(());
        }
        self.changes.push(Change::HealthChanged { host: id, health: Health::Failed });
        self.withdraw_degraded(id, Withdrawal::HostFailed);
        self.withdraw_work(id, host);
        let mut machines = self.cluster.machines_on(id);
        machines.retain(|machine| !self.is_leaving(*machine, id));
        if machines.is_empty() {
            return Ok(());
        }
        self.plan(Cause::FailedHost { host: id, kind: self.cluster.settings.failure }, &machines)
    }

    /// Whether an earlier failure of the host is still moving the machine away.
    fn is_leaving(&self, machine: MachineId, id: HostId) -> bool {
        let failed = |pending: &&Maintenance| matches!(pending.plan.cause, Cause::FailedHost { host, .. } if host == id);
        let mut actions =
            self.cluster.pending_of(machine).filter(failed).filter_map(|pending| pending.action(machine));
        actions.any(|action| action.impact.destination().is_some())
    }

    /// A host is well again; nobody has to leave it any more.
    pub(super) fn recover_host(&mut self, id: HostId) -> Result<(), Refusal> {
        if self.cluster.known_host(id)?.health == Health::Healthy {
            return Ok(());
        }
        self.withdraw_degraded(id, Withdrawal::HostRecovered);
        self.changes.push(Change::HealthChanged { host: id, health: Health::Healthy });
        Ok(())
    }

    /// A machine has come to a host that is not well any more: it is told what those are told that were there.
    pub(super) fn rescue(&mut self, id: MachineId) -> Result<(), Refusal> {
        let host = self.cluster.known_machine(id)?.host;
        self.crowding = Crowding::Permitted;
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

    /// Withdraws the parts of planned work that are about machines on this host only.
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
