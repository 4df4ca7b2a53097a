//! Work on hosts: planned over many, group by group; and what cannot be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::draft::Draft;
use crate::change::Change;
use crate::command::Refusal;
use crate::fleet::{Health, Host};
use crate::ids::{HostId, MachineId, RolloutId, TenantId, UpdateDomain};
use crate::limits::{FAILURE_EXPECTED_IN_MAX, HOSTS_PER_ROLLOUT_MAX, RESOURCES_PER_EVENT_MAX, ROLLOUTS_MAX};
use crate::maintenance::{Cause, HostWork, Stage, Withdrawal};
use crate::tenant::{Tenant, WorkKind};

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
        self.next.rollout += 1;
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
        if work == HostWork::Migration {
            for machine in self.cluster.machines_on(id, host).filter_map(|id| self.cluster.machine(id)) {
                let place = self.cluster.place(machine, &[id], &[]);
                place.ok_or_else(|| Refusal::NoHost(machine.name.clone()))?;
            }
        }
        Ok(())
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
        for id in waiting {
            let Some(host) = self.cluster.host(*id) else { continue };
            let machines: Vec<_> = self.cluster.machines_on(*id, host).collect();
            if let Some(tenants) = self.joined(&group, &machines) {
                group.tenants.extend(tenants);
                group.machines.extend(machines);
                group.hosts.push(*id);
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

    /// The tenants of a further host as they would stand in the group; nothing, if the host cannot join it.
    fn joined(
        &self,
        group: &Group,
        machines: &[MachineId],
    ) -> Option<BTreeMap<TenantId, (UpdateDomain, usize)>> {
        let mut joined = BTreeMap::new();
        for machine in machines.iter().filter_map(|id| self.cluster.machine(*id)) {
            let tenant = machine.tenant;
            let present = joined.get(&tenant).or_else(|| group.tenants.get(&tenant)).copied();
            let (domain, count) = present.unwrap_or((machine.update_domain, 0));
            if domain != machine.update_domain || count == RESOURCES_PER_EVENT_MAX {
                return None;
            }
            joined.insert(tenant, (domain, count + 1));
        }
        let free = |(tenant, (domain, _)): (&TenantId, &(UpdateDomain, usize))| {
            let works = self.cluster.tenant(*tenant).map_or(&[][..], Tenant::works);
            works.iter().all(|work| work.kind != WorkKind::HostWork || work.update_domain == *domain)
        };
        joined.iter().all(free).then_some(joined)
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

    /// A host is expected to fail: each of its machines is told, and moved when it is ready.
    pub(super) fn degrade_host(&mut self, id: HostId, fails_in: Option<Duration>) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        let fails_in = fails_in.unwrap_or(FAILURE_EXPECTED_IN_MAX);
        match host.health {
            Health::Failed => return Err(Refusal::HostFailed(host.name.clone())),
            Health::Degraded => return Ok(()),
            Health::Healthy if fails_in > FAILURE_EXPECTED_IN_MAX => return Err(Refusal::FailureTooFar),
            Health::Healthy => {}
        }
        self.changes.push(Change::HealthChanged { host: id, health: Health::Degraded });
        for machine in self.cluster.machines_on(id, host) {
            self.plan(Cause::DegradedHost { host: id, fails_in }, &[machine])?;
        }
        Ok(())
    }

    /// A host has failed: what was announced for its degradation is withdrawn, and the failure appears, in one step.
    pub(super) fn fail_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Ok(());
        }
        self.withdraw_degraded(id, host, Withdrawal::HostFailed);
        self.changes.push(Change::HealthChanged { host: id, health: Health::Failed });
        let machines: Vec<_> = self.cluster.machines_on(id, host).collect();
        if machines.is_empty() {
            return Ok(());
        }
        self.plan(Cause::FailedHost { host: id, kind: self.cluster.settings.failure }, &machines)
    }

    /// A host is well again; nobody has to leave it any more.
    pub(super) fn recover_host(&mut self, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Healthy {
            return Ok(());
        }
        self.withdraw_degraded(id, host, Withdrawal::HostRecovered);
        self.changes.push(Change::HealthChanged { host: id, health: Health::Healthy });
        Ok(())
    }

    fn withdraw_degraded(&mut self, id: HostId, host: &Host, why: Withdrawal) {
        let cluster = self.cluster;
        for maintenance in host.machines().iter().flat_map(|machine| cluster.waiting_of(*machine)) {
            if matches!(maintenance.plan.cause, Cause::DegradedHost { host, .. } if host == id) {
                self.withdraw_all(maintenance, why);
            }
        }
    }
}
