//! The state: a set of hosts, the tenants placed on them, and their planned and current work.
//!
//! Hosts, tenants and machines are found by number in one step, everything else in ordered maps of current work. No
//! operation costs more than the objects it touches: nothing walks over all tenants, all machines or all hosts.
//!
//! A copy shares all memory and costs some hundreds of pointers, whatever the size of the cluster.

use std::sync::Arc;

use forewarn_types::{
    ActionName, Event, EventId, HostId, MachineId, MaintenanceId, Now, RolloutId, ScaleSetId, Seed, TenantId,
    Zone,
};

use crate::action::{Action, Impact};
use crate::agenda::{Agenda, Deadline};
use crate::capacity::Capacities;
use crate::fleet::{Health, Host, HostLoad, Machine, Power, ScaleSet};
use crate::host_step::Target;
use crate::maintenance::{Cause, Hold, Maintenance};
use crate::name_index::NameIndex;
use crate::paged::{PagedMap, PagedSet};
use crate::policy::{Approve, Brake, Settings};
use crate::refusal::Refusal;
use crate::rollout::{EndedRollout, Presence, Rollout};
use crate::table::Table;
use crate::tenant::Tenant;
use crate::tenant_windows::{OwnedWindows, WindowOwner};

/// A set of hosts and the tenants placed on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub(crate) seed: Seed,
    /// Secrets from before imports, oldest first. Each one names the actions of some unfinished work.
    pub(crate) former_seeds: Vec<FormerSeed>,
    pub(crate) settings: Settings,
    pub(crate) brake: Brake,
    pub(crate) next: Counters,

    pub(crate) hosts: Table<HostId, Host>,
    pub(crate) tenants: Table<TenantId, Tenant>,
    pub(crate) machines: Table<MachineId, Machine>,
    pub(crate) scale_sets: Table<ScaleSetId, ScaleSet>,
    pub(crate) maintenances: PagedMap<MaintenanceId, Arc<Maintenance>>,
    pub(crate) rollouts: PagedMap<RolloutId, Arc<Rollout>>,
    /// Recently ended rollouts, in the order in which they ended.
    pub(crate) ended_rollouts: Vec<(RolloutId, Arc<EndedRollout>)>,

    pub(crate) host_names: NameIndex<HostId>,
    pub(crate) tenant_names: NameIndex<TenantId>,
    pub(crate) scale_set_names: NameIndex<ScaleSetId>,
    pub(crate) machine_names: NameIndex<MachineId>,
    /// Open hosts by zone and number: candidates for moved machines.
    pub(crate) open_hosts: PagedSet<(Option<Zone>, HostId)>,
    /// Open hosts by zone and number of machines: candidates for new machines.
    pub(crate) open_by_load: PagedSet<(Option<Zone>, HostLoad, HostId)>,
    /// Sizes of machines, capacities of hosts, and the part of them that is in use.
    pub(crate) capacities: Capacities,
    /// Hosts that are degraded or have failed.
    pub(crate) unhealthy: PagedSet<HostId>,
    /// The maintenances of each machine.
    pub(crate) pending: PagedSet<(MachineId, MaintenanceId)>,
    /// The maintenance and the tenant of each visible event.
    pub(crate) events: PagedMap<EventId, (MaintenanceId, TenantId)>,
    /// Visible events that wait for the approval of their tenants.
    pub(crate) unapproved: PagedSet<(MaintenanceId, TenantId)>,
    /// The number of unfinished actions in each part of a started maintenance.
    pub(crate) unfinished_counts: PagedMap<(MaintenanceId, TenantId), u32>,
    /// Maintenances that have started and not ended.
    pub(crate) running: PagedSet<MaintenanceId>,
    /// Maintenances that could start but are held.
    pub(crate) held: PagedSet<(Hold, MaintenanceId)>,
    /// Maintenances that are held for lack of a host, by the zones of their hosts.
    pub(crate) waiting_for_host: PagedSet<(Option<Zone>, MaintenanceId)>,
    /// The windows of tenants and scale sets that have any.
    pub(crate) tenant_windows: PagedMap<WindowOwner, OwnedWindows>,
    /// Returns of machines to hosts that have left maintenance mode, by host.
    pub(crate) returns: PagedSet<(HostId, MaintenanceId)>,
    /// Machines that rollouts observe because their health gates include machines.
    pub(crate) presences: PagedMap<(MachineId, RolloutId), Presence>,
    pub(crate) agenda: Agenda,
}

/// The secret that a cluster had before an import. Work of that time keeps its action names, because a driver program
/// may have carried the actions out already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerSeed {
    /// The secret.
    pub seed: Seed,
    /// The first maintenance that was planned without it.
    pub until: MaintenanceId,
}

/// The next number of each kind. No number is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the kinds")]
pub struct Counters {
    pub host: u32,
    pub tenant: u32,
    pub machine: u32,
    pub scale_set: u32,
    pub maintenance: u64,
    pub rollout: u64,
    pub event: u64,
}

impl Cluster {
    /// A cluster without hosts, whose event ids are derived from that secret.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            former_seeds: Vec::new(),
            settings: Settings::default(),
            brake: Brake::default(),
            next: Counters::default(),
            hosts: Table::new(),
            tenants: Table::new(),
            machines: Table::new(),
            scale_sets: Table::new(),
            maintenances: PagedMap::new(),
            rollouts: PagedMap::new(),
            ended_rollouts: Vec::new(),
            host_names: NameIndex::new(),
            tenant_names: NameIndex::new(),
            scale_set_names: NameIndex::new(),
            machine_names: NameIndex::new(),
            open_hosts: PagedSet::new(),
            open_by_load: PagedSet::new(),
            capacities: Capacities::default(),
            unhealthy: PagedSet::new(),
            pending: PagedSet::new(),
            events: PagedMap::new(),
            unapproved: PagedSet::new(),
            unfinished_counts: PagedMap::new(),
            running: PagedSet::new(),
            held: PagedSet::new(),
            waiting_for_host: PagedSet::new(),
            tenant_windows: PagedMap::new(),
            returns: PagedSet::new(),
            presences: PagedMap::new(),
            agenda: Agenda::default(),
        }
    }

    /// The name of the action that a maintenance has for a target.
    #[must_use]
    pub fn action_name(&self, maintenance: MaintenanceId, target: Target) -> ActionName {
        let former = self.former_seeds.iter().find(|former| maintenance < former.until);
        let seed = former.map_or(&self.seed, |former| &former.seed);
        match target {
            Target::Machine(machine) => ActionName::of(seed, maintenance, machine),
            Target::Returning(machine) => ActionName::of_return(seed, maintenance, machine),
            Target::Host(host) => ActionName::of_host(seed, maintenance, host),
        }
    }

    /// The current secret and the earlier ones that still name actions, for an import that replaces the secret.
    #[must_use]
    pub fn seeds_in_use(&self) -> Vec<FormerSeed> {
        let current = FormerSeed { seed: self.seed, until: MaintenanceId(self.next.maintenance) };
        let mut first = MaintenanceId(0);
        let mut in_use = Vec::new();
        for former in self.former_seeds.iter().copied().chain([current]) {
            if self.maintenances.range(first..former.until).next().is_some() {
                in_use.push(former);
            }
            first = former.until;
        }
        in_use
    }

    /// Replaces the secret. Work that was planned under an earlier secret keeps its action names.
    pub(crate) fn replace_seed(&mut self, seed: Seed) {
        self.former_seeds = self.seeds_in_use();
        self.seed = seed;
    }

    /// The secret that ids and names in this cluster derive from.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// A host.
    #[must_use]
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(&id)
    }

    /// A tenant.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> Option<&Tenant> {
        self.tenants.get(&id)
    }

    /// A machine.
    #[must_use]
    pub fn machine(&self, id: MachineId) -> Option<&Machine> {
        self.machines.get(&id)
    }

    /// A scale set.
    #[must_use]
    pub fn scale_set(&self, id: ScaleSetId) -> Option<&ScaleSet> {
        self.scale_sets.get(&id)
    }

    /// A maintenance that has not ended.
    #[must_use]
    pub fn maintenance(&self, id: MaintenanceId) -> Option<&Maintenance> {
        self.maintenances.get(&id).map(Arc::as_ref)
    }

    /// A rollout that has not ended.
    #[must_use]
    pub fn rollout(&self, id: RolloutId) -> Option<&Rollout> {
        self.rollouts.get(&id).map(Arc::as_ref)
    }

    /// A rollout that has ended, as long as it is remembered.
    #[must_use]
    pub fn ended_rollout(&self, id: RolloutId) -> Option<&EndedRollout> {
        self.ended_rollouts.iter().find(|(ended, _)| *ended == id).map(|(_, ended)| &**ended)
    }

    /// The host of that name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostId> {
        let mut candidates = self.host_names.candidates(name);
        candidates.find(|id| self.host(*id).is_some_and(|host| host.name.as_str() == name))
    }

    /// The tenant of that name.
    #[must_use]
    pub fn tenant_named(&self, name: &str) -> Option<TenantId> {
        self.tenants_named_in_any_case(name)
            .find(|(_, tenant)| tenant.name.as_str() == name)
            .map(|(id, _)| id)
    }

    /// The scale set of that name.
    #[must_use]
    pub fn scale_set_named(&self, name: &str) -> Option<ScaleSetId> {
        self.scale_sets_named_in_any_case(name).find(|(_, set)| set.name.as_str() == name).map(|(id, _)| id)
    }

    /// The machine of that name in a tenant. Costs the machines of the tenant or those of the name, whichever are
    /// fewer.
    #[must_use]
    pub fn machine_named(&self, tenant: TenantId, name: &str) -> Option<MachineId> {
        let is_it = |id: &MachineId| {
            self.machine(*id).is_some_and(|one| one.tenant == tenant && one.name.as_str() == name)
        };
        // Every machine that is sought is in both lists, so the end of either ends the search.
        let of_tenant = self.tenant(tenant)?.machines().iter().copied();
        of_tenant.zip(self.machine_names.candidates(name)).flat_map(|(one, other)| [one, other]).find(is_it)
    }

    /// The machines of that name, in the order in which they joined. Other machines cost nothing.
    pub fn machines_named(&self, name: &str) -> impl Iterator<Item = (MachineId, &Machine)> {
        self.machines_named_in_any_case(name).filter(move |(_, machine)| machine.name.as_str() == name)
    }

    /// The machines of that name, whatever the case of its letters.
    pub fn machines_named_in_any_case(&self, name: &str) -> impl Iterator<Item = (MachineId, &Machine)> {
        let named = self.machine_names.candidates(name).filter_map(|id| Some((id, self.machine(id)?)));
        named.filter(move |(_, machine)| machine.name.as_str().eq_ignore_ascii_case(name))
    }

    /// The tenants of that name, whatever the case of its letters.
    pub fn tenants_named_in_any_case(&self, name: &str) -> impl Iterator<Item = (TenantId, &Tenant)> {
        let named = self.tenant_names.candidates(name).filter_map(|id| Some((id, self.tenant(id)?)));
        named.filter(move |(_, tenant)| tenant.name.as_str().eq_ignore_ascii_case(name))
    }

    /// The scale sets of that name, whatever the case of its letters.
    pub fn scale_sets_named_in_any_case(&self, name: &str) -> impl Iterator<Item = (ScaleSetId, &ScaleSet)> {
        let named = self.scale_set_names.candidates(name).filter_map(|id| Some((id, self.scale_set(id)?)));
        named.filter(move |(_, set)| set.name.as_str().eq_ignore_ascii_case(name))
    }

    /// The visible event with that id, and its tenant.
    #[must_use]
    pub fn event(&self, id: EventId) -> Option<(TenantId, &Event)> {
        let (_, tenant) = self.events.get(&id)?;
        Some((*tenant, self.tenant(*tenant)?.event(id)?))
    }

    /// Every host, in the order in which they joined.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &Host)> {
        self.hosts.iter()
    }

    /// Every tenant, in the order in which they joined.
    pub fn tenants(&self) -> impl Iterator<Item = (TenantId, &Tenant)> {
        self.tenants.iter()
    }

    /// Every machine, in the order in which they joined.
    pub fn machines(&self) -> impl Iterator<Item = (MachineId, &Machine)> {
        self.machines.iter()
    }

    /// The hosts from that number on, in the order in which they joined. Earlier hosts cost nothing.
    pub fn hosts_from(&self, first: HostId) -> impl Iterator<Item = (HostId, &Host)> {
        self.hosts.iter_from(first)
    }

    /// The tenants from that number on.
    pub fn tenants_from(&self, first: TenantId) -> impl Iterator<Item = (TenantId, &Tenant)> {
        self.tenants.iter_from(first)
    }

    /// The machines from that number on.
    pub fn machines_from(&self, first: MachineId) -> impl Iterator<Item = (MachineId, &Machine)> {
        self.machines.iter_from(first)
    }

    /// The maintenances that have not ended, from that number on.
    pub fn maintenances_from(&self, first: MaintenanceId) -> impl Iterator<Item = &Maintenance> {
        self.maintenances.range(first..).map(|(_, maintenance)| &**maintenance)
    }

    /// The rollouts that have not ended, from that number on.
    pub fn rollouts_from(&self, first: RolloutId) -> impl Iterator<Item = (RolloutId, &Rollout)> {
        self.rollouts.range(first..).map(|(id, rollout)| (*id, &**rollout))
    }

    /// Every scale set, in the order in which they joined.
    pub fn scale_sets(&self) -> impl Iterator<Item = (ScaleSetId, &ScaleSet)> {
        self.scale_sets.iter()
    }

    /// The scale sets from that number on.
    pub fn scale_sets_from(&self, first: ScaleSetId) -> impl Iterator<Item = (ScaleSetId, &ScaleSet)> {
        self.scale_sets.iter_from(first)
    }

    /// Every maintenance that has not ended, in the order of planning.
    pub fn maintenances(&self) -> impl Iterator<Item = &Maintenance> {
        self.maintenances.values().map(Arc::as_ref)
    }

    /// The rollout that will be planned next.
    #[must_use]
    pub fn next_rollout(&self) -> RolloutId {
        RolloutId(self.next.rollout)
    }

    /// Every rollout that has not ended, in the order of planning.
    pub fn rollouts(&self) -> impl Iterator<Item = (RolloutId, &Rollout)> {
        self.rollouts.iter().map(|(id, rollout)| (*id, &**rollout))
    }

    /// Every ended rollout that is still remembered, in the order in which they ended.
    pub fn ended_rollouts(&self) -> impl Iterator<Item = (RolloutId, &EndedRollout)> {
        self.ended_rollouts.iter().map(|(id, ended)| (*id, &**ended))
    }

    /// The held maintenances, each with the reason.
    pub fn held(&self) -> impl Iterator<Item = (MaintenanceId, Hold)> {
        self.held.iter().map(|(hold, id)| (*id, *hold))
    }

    /// The settings that an operator has chosen.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The brake, which holds every start while it is on.
    #[must_use]
    pub fn brake(&self) -> Brake {
        self.brake
    }

    /// The next moment at which the passing of time alone changes the state.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        self.agenda.next()
    }

    /// The tenants whose silence deadline is due. For each of them the shell submits `Heard` or `Silent`.
    pub fn silences_due(&self, now: Now) -> impl Iterator<Item = TenantId> {
        self.agenda.silences(now)
    }

    /// The number of unfinished actions in the part of a tenant in started work.
    #[must_use]
    pub fn unfinished_in(&self, maintenance: MaintenanceId, tenant: TenantId) -> u32 {
        self.unfinished_counts.get(&(maintenance, tenant)).copied().unwrap_or(0)
    }

    /// Actions that were requested and not reported as finished, except suspended ones and those that a fence bars. After
    /// a crash they are requested again.
    pub fn unfinished(&self) -> impl Iterator<Item = Action> {
        let requested =
            self.running.iter().filter_map(|id| self.maintenance(*id)).flat_map(Maintenance::requested);
        requested.filter(|action| self.barred_by(*action).is_none())
    }

    pub(crate) fn known_host(&self, id: HostId) -> Result<&Host, Refusal> {
        self.host(id).ok_or(Refusal::NoSuchHost)
    }

    pub(crate) fn known_tenant(&self, id: TenantId) -> Result<&Tenant, Refusal> {
        self.tenant(id).ok_or(Refusal::NoSuchTenant)
    }

    pub(crate) fn known_machine(&self, id: MachineId) -> Result<&Machine, Refusal> {
        self.machine(id).ok_or(Refusal::NoSuchMachine)
    }

    pub(crate) fn known_scale_set(&self, id: ScaleSetId) -> Result<&ScaleSet, Refusal> {
        self.scale_set(id).ok_or(Refusal::NoSuchScaleSet)
    }

    /// Returns true if a machine is being deleted, or evicted for good.
    #[must_use]
    pub fn is_leaving(&self, machine: MachineId) -> bool {
        self.pending_of(machine).any(|maintenance| maintenance.plan.cause.deletes_machine())
    }

    /// The maintenances, planned or in progress, that name a machine.
    pub fn pending_of(&self, machine: MachineId) -> impl Iterator<Item = &Maintenance> {
        let all = (machine, MaintenanceId(0))..=(machine, MaintenanceId(u64::MAX));
        self.pending.range(all).filter_map(|(_, id)| self.maintenance(*id))
    }

    /// The maintenances of a machine that have not started.
    pub(crate) fn waiting_of(&self, machine: MachineId) -> impl Iterator<Item = &Maintenance> {
        self.pending_of(machine).filter(|maintenance| maintenance.wait().is_some())
    }

    /// The machines that work on a host affects: those that are placed there and not deallocated.
    #[must_use]
    pub fn machines_on(&self, id: HostId) -> Vec<MachineId> {
        let listed = self.host(id).map_or(&[][..], Host::machines);
        listed.iter().copied().filter(|machine| self.is_on(*machine, id)).collect()
    }

    fn is_on(&self, machine: MachineId, host: HostId) -> bool {
        let machine = self.machine(machine);
        machine.is_some_and(|machine| machine.host == host && machine.power != Power::Deallocated)
    }

    /// Returns true if a machine is about to arrive on the host: it would miss the announcement of work there.
    pub(crate) fn expects_arrivals(&self, id: HostId) -> bool {
        let listed = self.host(id).map_or(&[][..], Host::machines);
        let starting = |machine: &MachineId| {
            let mut actions = self.pending_of(*machine).filter_map(|pending| pending.action(*machine));
            actions.any(|action| matches!(action.impact, Impact::Start { .. }))
        };
        listed.iter().any(|machine| match self.machine(*machine) {
            Some(known) if known.host != id => true,
            Some(known) => known.power == Power::Deallocated && starting(machine),
            None => false,
        })
    }

    /// Returns true if an unfinished action takes the machine to another host.
    pub(crate) fn is_moving(&self, machine: MachineId) -> bool {
        let mut actions = self.pending_of(machine).filter_map(|pending| pending.action(machine));
        actions.any(|action| action.impact.destination().is_some())
    }

    /// Returns true if a maintenance would still do something to a machine. Work that names only one machine is
    /// withdrawn when the machine leaves; host work continues for the others. On a failed host there is nothing left to
    /// do.
    pub(crate) fn concerns(&self, cause: &Cause, machine: MachineId) -> bool {
        let Some(known) = self.machine(machine) else { return false };
        if let Cause::FailedHost { host, .. } = cause {
            return self.failure_concerns(*host, machine);
        }
        if let Cause::HostReturn { host, .. } = cause {
            return known.host != *host && known.power != Power::Deallocated;
        }
        let Cause::HostWork { hosts, .. } = cause else { return true };
        let failed = self.host(known.host).is_none_or(|host| host.health == Health::Failed);
        hosts.binary_search(&known.host).is_ok() && known.power != Power::Deallocated && !failed
    }

    /// Returns true if no machine of the tenant runs, and its policy counts that as an approval.
    pub(crate) fn all_down(&self, tenant: &Tenant) -> bool {
        let runs = |id: &MachineId| self.machine(*id).is_some_and(|machine| machine.power == Power::Running);
        tenant.policy.all_instances_down == Approve::Automatically && !tenant.machines().iter().any(runs)
    }
}
