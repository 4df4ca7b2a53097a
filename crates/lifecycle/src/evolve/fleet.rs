//! Application of changes to hosts, tenants and machines.

use forewarn_types::{HostId, MachineId, Name, Steady, TenantId, Zone};

use crate::action::Impact;
use crate::agenda::{Attention, Due};
use crate::capacity::Size;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::fleet::{EvictionPolicy, Fence, Health, Host, HostAttention, Machine, Power, Profile};
use crate::host_step::Aside;
use crate::policy::Policy;
use crate::tenant::{Enrolment, Shape, Tenant};
use crate::tenant_windows::WindowOwner;

impl Cluster {
    pub(super) fn host_admitted(&mut self, id: HostId, name: &Name, zone: Option<Zone>) {
        self.next.host = id.0 + 1;
        self.host_names.insert(name.as_str(), id);
        let name = name.clone();
        let (health, attention, machines) = (Health::Healthy, HostAttention::Unneeded, Vec::new());
        let fence = Fence::Unneeded;
        let new =
            Host { name, zone, health, rollout: None, work: None, attention, fence, mode: None, machines };
        self.hosts.insert(id, new);
        self.list_if_open(id);
        self.offer_host_of(zone);
    }

    pub(super) fn host_removed(&mut self, id: HostId) {
        self.unlist_if_open(id);
        if let Some(host) = self.hosts.remove(&id) {
            self.host_names.remove(host.name.as_str(), id);
            self.unhealthy.remove(&id);
            self.forget_room(id);
            self.recheck_rollouts_awaiting_health();
        }
    }

    pub(super) fn health_changed(&mut self, id: HostId, health: Health) {
        self.change_host(id, |host| host.health = health);
        match health {
            Health::Healthy => {
                self.unhealthy.remove(&id);
                self.recheck_rollouts_awaiting_health();
                self.advance_rollout_of(id);
                self.machines_on(id).into_iter().for_each(|machine| self.rescue_if_stranded(machine));
            }
            Health::Degraded => drop(self.unhealthy.insert(id)),
            Health::Failed => {
                self.unhealthy.insert(id);
                // Work that is held for lack of a host may lack none for the machines on other hosts.
                self.machines_on(id).into_iter().for_each(|machine| self.recheck_work_held_for_host(machine));
                self.recheck_held_group(id);
                self.postpone_work(id);
            }
        }
    }

    pub(super) fn tenant_admitted(
        &mut self,
        id: TenantId,
        name: &Name,
        shape: Shape,
        policy: Policy,
        out: &mut Vec<Effect>,
    ) {
        self.next.tenant = id.0 + 1;
        self.tenant_names.insert(name.as_str(), id);
        let enrolment = Enrolment::initial(self.settings.enrolment);
        self.tenants.insert(id, Tenant { enrolment, ..Tenant::new(name.clone(), shape, policy) });
        if let Shape::PlacementGroup(set) = shape
            && let Some(set) = self.scale_sets.get_mut(&set)
        {
            set.groups.push(id);
        }
        out.push(Effect::Publish(id));
    }

    pub(super) fn policy_changed(&mut self, id: TenantId, policy: Policy) {
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.policy = policy;
        }
        self.recheck_all_of(id);
    }

    pub(super) fn tenant_removed(&mut self, id: TenantId, out: &mut Vec<Effect>) {
        self.forget_silence(id);
        if let Some(tenant) = self.tenants.remove(&id) {
            self.tenant_names.remove(tenant.name.as_str(), id);
            self.tenant_windows.remove(&WindowOwner::Tenant(id));
            out.push(Effect::Unpublish(id));
        }
    }

    pub(super) fn machine_admitted(&mut self, id: MachineId, new: &Machine) {
        self.next.machine = id.0 + 1;
        let Some(tenant) = self.tenants.get_mut(&new.tenant) else { return };
        tenant.machines.push(id);
        if let Shape::PlacementGroup(set) = tenant.shape
            && let Some(set) = self.scale_sets.get_mut(&set)
        {
            let number = new.name.instance_number(&set.name);
            set.next_instance = number.unwrap_or(set.next_instance).saturating_add(1);
        }
        let mut machine = new.clone();
        if tenant.shape == Shape::StandaloneMachine {
            machine.name = tenant.name.clone();
        }
        self.machine_names.insert(machine.name.as_str(), id);
        self.machines.insert(id, machine);
        self.change_host(new.host, |host| host.add(id));
    }

    pub(super) fn profile_changed(&mut self, id: MachineId, model_version: u32, profile: Profile) {
        if let Some(machine) = self.machines.get_mut(&id) {
            (machine.model_version, machine.profile) = (model_version, profile);
        }
    }

    /// Removes a machine that is no longer managed, and the tenant of a standalone machine with it.
    pub(super) fn machine_forgotten(&mut self, id: MachineId, out: &mut Vec<Effect>) {
        let Some(Machine { tenant, host, .. }) = self.machines.get(&id) else { return };
        let (tenant, host) = (*tenant, *host);
        self.remove_machine(id, out);
        self.recheck_rollouts_awaiting_health();
        self.rescue_if_stranded(id);
        self.recheck_held_work_of(id);
        self.advance_rollout_of(host);
        self.drop_if_abandoned(tenant, out);
    }

    /// Puts a machine on the host to which an operator moved it.
    pub(super) fn machine_moved(&mut self, id: MachineId, to: HostId) {
        let Some(from) = self.machines.get(&id).map(|machine| machine.host) else { return };
        if self.hosts.get(&to).is_none() {
            return;
        }
        self.change_host(to, |host| host.add(id));
        self.arrive(id, to);
        [from, to].into_iter().for_each(|host| self.refresh_room(id, host));
        self.recheck_rollouts_awaiting_health();
        self.rescue_if_stranded(id);
        self.recheck_held_work_of(id);
        [from, to].into_iter().for_each(|host| self.advance_rollout_of(host));
    }

    /// Applies the result of an impact to a machine.
    pub(super) fn apply(&mut self, id: MachineId, impact: Impact, out: &mut Vec<Effect>) {
        let Some(machine) = self.machines.get_mut(&id) else { return };
        let runs = u32::from(machine.power == Power::Running);
        match impact {
            Impact::Pause { .. }
            | Impact::Migrate { .. }
            | Impact::StepAside(_)
            | Impact::Return(Aside::Paused)
            | Impact::OnHost(_) => {}
            Impact::Reboot { .. } | Impact::Reimage | Impact::Return(Aside::Stopped) => machine.boots += runs,
            Impact::Redeploy { .. } => {
                machine.boots += runs;
                machine.ephemeral_generation += 1;
            }
            Impact::Start { .. } => {
                machine.boots += 1;
                machine.power = Power::Running;
            }
            Impact::Stop if machine.power == Power::Running => self.power_off(id, Power::Stopped, out),
            Impact::Stop => {}
            Impact::Evict(EvictionPolicy::Deallocate) | Impact::Deallocate => {
                machine.ephemeral_generation += 1;
                self.power_off(id, Power::Deallocated, out);
            }
            Impact::Evict(EvictionPolicy::Delete) | Impact::Delete => self.remove_machine(id, out),
        }
        if let Some(to) = impact.destination() {
            self.arrive(id, to);
        }
        let comes_or_goes = impact.destination().is_some() || impact.changes_power();
        if comes_or_goes {
            self.recheck_rollouts_awaiting_health();
            self.rescue_if_stranded(id);
        }
    }

    /// Has the next tick announce the state of an unhealthy host to a machine that has no such event yet.
    fn rescue_if_stranded(&mut self, id: MachineId) {
        let is_announced = |host: HostId| {
            self.pending_of(id).any(|pending| pending.plan.cause.announces_unhealthy_host(host))
        };
        let stranded = self.machines.get(&id).is_some_and(|machine| {
            let is_unhealthy =
                self.hosts.get(&machine.host).is_some_and(|host| host.health != Health::Healthy);
            is_unhealthy && machine.power != Power::Deallocated && !is_announced(machine.host)
        });
        if stranded {
            self.agenda.add(Steady::START, Due::Stranded(id));
        } else if self.agenda.attention(Due::Stranded(id)) == Attention::Due {
            self.agenda.remove(Steady::START, Due::Stranded(id));
        }
    }

    fn arrive(&mut self, id: MachineId, to: HostId) {
        let Some(machine) = self.machines.get_mut(&id) else { return };
        let from = std::mem::replace(&mut machine.host, to);
        self.vacate(id, from);
    }

    /// Removes a machine from the list of a host, unless it runs there or is moving there.
    pub(super) fn vacate(&mut self, id: MachineId, from: HostId) {
        let here = self.machines.get(&id).is_some_and(|machine| machine.host == from);
        let mut underway = self.pending_of(id).filter_map(|pending| pending.action(id));
        let coming = underway.any(|action| action.impact.destination() == Some(from));
        drop(underway);
        if let Some(tenant) = self.machines.get(&id).map(|machine| machine.tenant)
            && !here
            && !coming
        {
            self.leave((id, tenant), from);
        }
    }

    /// Frees a place on a host for machines of the same tenant, and for others if the host was full.
    fn leave(&mut self, (id, tenant): (MachineId, TenantId), from: HostId) {
        let was_open = self.hosts.get(&from).is_some_and(Host::is_open);
        self.change_host(from, |host| host.remove(id));
        if was_open {
            self.offer_place_to(tenant);
        }
    }

    fn power_off(&mut self, id: MachineId, power: Power, out: &mut Vec<Effect>) {
        self.stop_observing(id, out);
        let Some(machine) = self.machines.get_mut(&id) else { return };
        machine.power = power;
        let tenant = machine.tenant;
        self.recheck_if_all_down(tenant);
    }

    fn remove_machine(&mut self, id: MachineId, out: &mut Vec<Effect>) {
        self.stop_observing(id, out);
        // Before it is gone: the list of work that waits for a host is by the zones of machines.
        self.recheck_work_held_for_host(id);
        let Some(machine) = self.machines.remove(&id) else { return };
        self.machine_names.remove(machine.name.as_str(), id);
        if let Some(tenant) = self.tenants.get_mut(&machine.tenant) {
            tenant.machines.retain(|other| *other != id);
        }
        let underway = self.pending_of(id).filter_map(|pending| pending.action(id));
        let coming = underway.filter_map(|action| action.impact.destination());
        let hosts: Vec<_> = coming.chain([machine.host]).collect();
        hosts.into_iter().for_each(|host| {
            self.refresh_room(id, host);
            self.leave((id, machine.tenant), host);
        });
        self.set_size(id, Size::NONE);
        self.recheck_if_all_down(machine.tenant);
    }

    /// Rechecks waiting work once no machine of the tenant runs: its policy may count that as an approval.
    fn recheck_if_all_down(&mut self, id: TenantId) {
        if self.tenants.get(&id).is_some_and(|tenant| self.all_down(tenant)) {
            self.recheck_all_of(id);
        }
    }

    /// Has the next ticks recheck all waiting work of a tenant.
    fn recheck_all_of(&mut self, id: TenantId) {
        let Some(tenant) = self.tenants.get(&id) else { return };
        let scheduled = tenant.events().iter().filter(|event| event.is_scheduled());
        let waiting: Vec<_> = scheduled.map(|event| event.maintenance).collect();
        waiting.into_iter().for_each(|maintenance| self.recheck(maintenance));
    }
}
