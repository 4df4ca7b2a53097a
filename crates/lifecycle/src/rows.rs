//! The state as rows, and back: a store writes a cluster as rows instead of replaying its whole history.
//!
//! A row holds only what cannot be derived. Names, indexes, the agenda and the work of each tenant are rebuilt from
//! rows, so that they cannot disagree. The order of rows matters: a row comes after the rows to which it refers.

use std::sync::Arc;

use forewarn_types::{
    Event, EventId, HostId, MachineId, MaintenanceId, Name, Phase, RolloutId, ScaleSetId, Seed, Steady,
    TenantId, Zone,
};

use crate::agenda::{Attention, Due};
use crate::capacity::Size;
use crate::cluster::{Cluster, Counters, FormerSeed};
use crate::fleet::{Fence, Health, Host, HostAttention, Machine, ScaleSet};
use crate::host_mode::MaintenanceMode;
use crate::maintenance::{Hold, Maintenance, Stage, Wait};
use crate::name_index::NameIndexBuilder;
use crate::policy::{Brake, Policy, Settings};
use crate::rollout::{EndedRollout, Presence, Rollout};
use crate::tenant::{Activity, Enrolment, Progress, Shape, Tenant, Work};
use crate::tenant_windows::WindowOwner;
use crate::window::Window;

/// One row of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The part that exists once. It comes first.
    Head(Head),
    /// A secret that names the actions of work from before an import. These rows follow the head, oldest first.
    FormerSeed(FormerSeed),
    /// A host.
    Host(HostRow),
    /// A scale set.
    ScaleSet(ScaleSetId, ScaleSet),
    /// A rollout that has not ended.
    Rollout(RolloutId, Rollout),
    /// An ended rollout, in the order in which they ended.
    EndedRollout(RolloutId, EndedRollout),
    /// A maintenance that has not ended.
    Maintenance(Maintenance),
    /// A tenant.
    Tenant(TenantRow),
    /// A machine.
    Machine(MachineRow),
    /// The windows of a tenant or a scale set.
    Windows(WindowOwner, Vec<Window>),
    /// The capacity of a host.
    Capacity(HostId, Size),
    /// The size of a machine.
    MachineSize(MachineId, Size),
    /// The size of future instances of a scale set.
    InstanceSize(ScaleSetId, Size),
    /// A machine that a rollout observes.
    Presence(MachineId, RolloutId, Presence),
}

/// The part of a cluster that exists once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The secret from which event ids are derived.
    pub seed: Seed,
    /// The settings that an operator has chosen.
    pub settings: Settings,
    /// The brake, which holds starts while it is on.
    pub brake: Brake,
    /// The next number of each kind.
    pub next: Counters,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of a host")]
pub struct HostRow {
    pub id: HostId,
    pub name: Name,
    pub zone: Option<Zone>,
    pub health: Health,
    pub rollout: Option<RolloutId>,
    pub work: Option<MaintenanceId>,
    pub attention: HostAttention,
    pub fence: Fence,
    pub mode: Option<Box<MaintenanceMode>>,
    /// Ascending.
    pub machines: Vec<MachineId>,
}

/// A machine, and its attention in the next tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRow {
    /// Its number.
    pub id: MachineId,
    /// The machine.
    pub machine: Machine,
    /// Attention of the next tick, for a machine on an unhealthy host.
    pub attention: Attention,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of a tenant")]
pub struct TenantRow {
    pub id: TenantId,
    pub name: Name,
    pub shape: Shape,
    pub policy: Policy,
    pub enrolment: Enrolment,
    pub incarnation: u64,
    pub machines: Vec<MachineId>,
    /// Its visible events: the maintenance and the phase of each. The maintenance has the announcement.
    pub events: Vec<(MaintenanceId, Phase)>,
    /// Ids of ended events that approvals may still name, each with its end.
    pub ended: Vec<(Steady, EventId)>,
}

/// The reason why rows cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rows are inconsistent: {0}")]
pub struct BadRows(pub &'static str);

/// A cluster that is being restored from its rows.
#[derive(Debug, Default)]
pub struct Restoring {
    cluster: Option<Cluster>,
    lists: Lists,
}

/// Entries of indexes that are built at once, after the last row.
#[derive(Debug, Default)]
struct Lists {
    host_names: NameIndexBuilder<HostId>,
    tenant_names: NameIndexBuilder<TenantId>,
    scale_set_names: NameIndexBuilder<ScaleSetId>,
    machine_names: NameIndexBuilder<MachineId>,
    silences: Vec<(Steady, TenantId)>,
}

impl Cluster {
    /// All rows, in the order that [`Restoring`] expects.
    pub fn into_rows(self) -> impl Iterator<Item = Row> + Send + 'static {
        let head = Head { seed: self.seed, settings: self.settings, brake: self.brake, next: self.next };
        let seeds = self.former_seeds.into_iter().map(Row::FormerSeed);
        let agenda = self.agenda;
        let hosts = self.hosts.into_rows().map(|(id, host)| Row::Host(HostRow::of(id, host)));
        let sets = self.scale_sets.into_rows().map(|(id, set)| Row::ScaleSet(id, set));
        let rollouts =
            self.rollouts.into_iter().map(|(id, rollout)| Row::Rollout(id, Arc::unwrap_or_clone(rollout)));
        let ended = self
            .ended_rollouts
            .into_iter()
            .map(|(id, ended)| Row::EndedRollout(id, Arc::unwrap_or_clone(ended)));
        let maintenances =
            self.maintenances.into_iter().map(|(_, work)| Row::Maintenance(Arc::unwrap_or_clone(work)));
        let tenants = self.tenants.into_rows().map(|(id, tenant)| Row::Tenant(TenantRow::of(id, tenant)));
        let machines = self.machines.into_rows().map(move |(id, machine)| {
            let attention = agenda.attention(Due::Stranded(id));
            Row::Machine(MachineRow { id, machine, attention })
        });
        let capacities = self.capacities.into_rows();
        let presences = self.presences.into_iter();
        let presences =
            presences.map(|((machine, rollout), presence)| Row::Presence(machine, rollout, presence));
        let head = std::iter::once(Row::Head(head));
        let windows = self.tenant_windows.into_iter();
        let windows = windows.map(|(owner, windows)| Row::Windows(owner, windows.to_vec()));
        let fleet = tenants.chain(machines).chain(windows);
        head.chain(seeds)
            .chain(hosts)
            .chain(sets)
            .chain(rollouts)
            .chain(ended)
            .chain(maintenances)
            .chain(fleet)
            .chain(capacities)
            .chain(presences)
    }
}

impl HostRow {
    fn of(id: HostId, host: Host) -> Self {
        let Host { name, zone, health, rollout, work, attention, fence, mode, machines } = host;
        Self { id, name, zone, health, rollout, work, attention, fence, mode, machines }
    }
}

impl TenantRow {
    /// The works of the tenant are derived from maintenances.
    fn of(id: TenantId, tenant: Tenant) -> Self {
        let Tenant { name, shape, policy, enrolment, incarnation, machines, activity } = tenant;
        let Activity { events, ended, works: _ } = activity.map_or_else(Activity::default, |boxed| *boxed);
        let events = events.into_iter().map(|event| (event.maintenance, event.phase)).collect();
        Self { id, name, shape, policy, enrolment, incarnation, machines, events, ended }
    }
}

impl Restoring {
    /// A cluster without rows so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next row.
    ///
    /// # Errors
    /// The row does not fit the rows before it.
    pub fn add(&mut self, row: Row) -> Result<(), BadRows> {
        let Some(cluster) = &mut self.cluster else {
            let Row::Head(Head { seed, settings, brake, next }) = row else {
                return Err(BadRows("the head is not the first row"));
            };
            self.cluster = Some(Cluster { settings, brake, next, ..Cluster::new(seed) });
            return Ok(());
        };
        self.lists.add(&row);
        match row {
            Row::Head(_) => Err(BadRows("there is more than one head row")),
            Row::FormerSeed(former) => cluster.restore_former_seed(former),
            Row::Host(row) => cluster.restore_host(row),
            Row::ScaleSet(id, set) => cluster.restore_scale_set(id, set),
            Row::Rollout(id, rollout) => cluster.restore_rollout(id, rollout),
            Row::EndedRollout(id, ended) => cluster.restore_ended_rollout(id, ended),
            Row::Maintenance(maintenance) => cluster.restore_maintenance(maintenance),
            Row::Tenant(row) => cluster.restore_tenant(row),
            Row::Machine(row) => cluster.restore_machine(row),
            Row::Windows(owner, windows) => cluster.restore_windows(owner, &windows),
            Row::Capacity(id, capacity) => cluster.restore_capacity(id, capacity),
            Row::MachineSize(id, size) => cluster.restore_size(id, size),
            Row::InstanceSize(id, size) => cluster.restore_instance_size(id, size),
            Row::Presence(machine, rollout, presence) => cluster.restore_presence(machine, rollout, presence),
        }
    }

    /// The cluster, after the last row.
    ///
    /// # Errors
    /// Rows are missing, or two objects have one name.
    pub fn finish(self) -> Result<Cluster, BadRows> {
        let mut cluster = self.cluster.ok_or(BadRows("the head row is missing"))?;
        self.lists.build(&mut cluster)?;
        cluster.list_open_hosts();
        cluster.restore_rooms();
        cluster.restore_work();
        let held: Vec<_> = cluster.held().collect();
        held.into_iter().for_each(|(id, hold)| cluster.list_for_host(id, hold));
        Ok(cluster)
    }
}

impl Lists {
    fn add(&mut self, row: &Row) {
        match row {
            Row::Host(HostRow { id, name, .. }) => self.host_names.add(name.as_str(), *id),
            Row::ScaleSet(id, set) => self.scale_set_names.add(set.name.as_str(), *id),
            Row::Machine(MachineRow { id, machine, .. }) => {
                self.machine_names.add(machine.name.as_str(), *id);
            }
            Row::Tenant(TenantRow { id, name, enrolment, events, .. }) => {
                self.tenant_names.add(name.as_str(), *id);
                if let Enrolment::Enabled { silent_at } = enrolment
                    && events.is_empty()
                {
                    self.silences.push((*silent_at, *id));
                }
            }
            Row::Head(_)
            | Row::FormerSeed(_)
            | Row::Rollout(..)
            | Row::EndedRollout(..)
            | Row::Maintenance(_)
            | Row::Windows(..)
            | Row::Capacity(..)
            | Row::MachineSize(..)
            | Row::InstanceSize(..)
            | Row::Presence(..) => {}
        }
    }

    /// Builds the indexes. Machines of different tenants may have one name, other objects may not.
    fn build(self, cluster: &mut Cluster) -> Result<(), BadRows> {
        cluster.host_names = self.host_names.build();
        cluster.tenant_names = self.tenant_names.build();
        cluster.scale_set_names = self.scale_set_names.build();
        cluster.machine_names = self.machine_names.build();
        cluster.agenda.restore_silences(self.silences);
        let is_unique = cluster.host_names.is_unique(|id| Some(cluster.host(id)?.name.as_str()))
            && cluster.tenant_names.is_unique(|id| Some(cluster.tenant(id)?.name.as_str()))
            && cluster.scale_set_names.is_unique(|id| Some(cluster.scale_set(id)?.name.as_str()));
        if is_unique { Ok(()) } else { Err(NOT_UNIQUE) }
    }
}

const NOT_UNIQUE: BadRows = BadRows("a number or a name is not unique");

/// Numbers are assigned in order, so a number at or above the next one was never assigned.
fn known<N: PartialOrd>(number: &N, next: &N) -> Result<(), BadRows> {
    if number < next { Ok(()) } else { Err(BadRows("a number was never assigned")) }
}

pub(crate) fn new<V>(before: Option<&V>) -> Result<(), BadRows> {
    if before.is_none() { Ok(()) } else { Err(NOT_UNIQUE) }
}

impl Cluster {
    fn restore_former_seed(&mut self, former: FormerSeed) -> Result<(), BadRows> {
        if self.former_seeds.last().is_some_and(|last| former.until <= last.until) {
            return Err(BadRows("the former seeds are not in ascending order"));
        }
        if former.until.0 > self.next.maintenance {
            return Err(BadRows("a number was never assigned"));
        }
        self.former_seeds.push(former);
        Ok(())
    }

    fn restore_host(&mut self, row: HostRow) -> Result<(), BadRows> {
        let HostRow { id, name, zone, health, rollout, work, attention, fence, mode, machines } = row;
        known(&id.0, &self.next.host)?;
        new(self.hosts.get(&id))?;
        if !machines.is_sorted_by(|one, other| one < other) {
            return Err(BadRows("the machines of a host are not in ascending order"));
        }
        self.hosts.insert(id, Host { name, zone, health, rollout, work, attention, fence, mode, machines });
        match health {
            Health::Healthy => {}
            Health::Degraded | Health::Failed => drop(self.unhealthy.insert(id)),
        }
        Ok(())
    }

    fn restore_scale_set(&mut self, id: ScaleSetId, set: ScaleSet) -> Result<(), BadRows> {
        known(&id.0, &self.next.scale_set)?;
        new(self.scale_sets.get(&id))?;
        self.scale_sets.insert(id, set);
        self.list_batch(id);
        Ok(())
    }

    fn restore_rollout(&mut self, id: RolloutId, rollout: Rollout) -> Result<(), BadRows> {
        known(&id.0, &self.next.rollout)?;
        new(self.rollouts.insert(id, Arc::new(rollout)).as_ref())?;
        self.list_rollout(id);
        Ok(())
    }

    fn restore_ended_rollout(&mut self, id: RolloutId, ended: EndedRollout) -> Result<(), BadRows> {
        known(&id.0, &self.next.rollout)?;
        self.ended_rollouts.push((id, Arc::new(ended)));
        Ok(())
    }

    fn restore_maintenance(&mut self, maintenance: Maintenance) -> Result<(), BadRows> {
        let plan = &maintenance.plan;
        let id = plan.id;
        known(&id.0, &self.next.maintenance)?;
        self.pending.extend(plan.machines().map(|machine| (machine, id)));
        self.list_return(id, &plan.cause);
        for part in &plan.parts {
            if let Some(announcement) = &part.announcement {
                new(self.events.insert(announcement.id, (id, part.tenant)).as_ref())?;
            }
        }
        match &maintenance.stage {
            Stage::Running { .. } => drop(self.running.insert(id)),
            Stage::Waiting(Wait::Notice) => self.agenda.add(plan.steady_due, Due::Start(id)),
            Stage::Waiting(Wait::Wall) => self.agenda.add_wall(plan.not_before, Due::Start(id)),
            Stage::Waiting(Wait::Nothing | Wait::Offered { .. }) => {
                self.agenda.add(Steady::START, Due::Start(id));
            }
            Stage::Waiting(Wait::Held(hold)) => {
                self.held.insert((*hold, id));
                if let Hold::Window { opens } = hold {
                    self.agenda.add_wall(*opens, Due::Start(id));
                }
            }
        }
        let (parts, aside) = (plan.parts.clone(), maintenance.all_aside());
        new(self.maintenances.insert(id, Arc::new(maintenance)).as_ref())?;
        for part in &parts {
            self.count_actions(id, part, &aside);
        }
        Ok(())
    }

    fn restore_tenant(&mut self, row: TenantRow) -> Result<(), BadRows> {
        let TenantRow { id, name, shape, policy, enrolment, incarnation, machines, events, ended } = row;
        known(&id.0, &self.next.tenant)?;
        new(self.tenants.get(&id))?;
        let mut visible = Vec::with_capacity(events.len());
        for (maintenance, phase) in events {
            let part = self.maintenances.get(&maintenance).and_then(|work| work.plan.part(id));
            let announcement = part.and_then(|part| part.announcement.clone());
            let announcement = announcement.ok_or(BadRows("an event was never announced"))?;
            let event = Event { announcement, maintenance, phase };
            if event.is_unapproved() {
                self.unapproved.insert((maintenance, id));
            }
            visible.push(event);
        }
        let tenant = Tenant { enrolment, incarnation, machines, ..Tenant::new(name, shape, policy) };
        self.tenants.insert(id, tenant.with_events(visible, ended));
        Ok(())
    }

    fn restore_machine(&mut self, row: MachineRow) -> Result<(), BadRows> {
        let MachineRow { id, mut machine, attention } = row;
        known(&id.0, &self.next.machine)?;
        new(self.machines.get(&id))?;
        let tenant = self.tenant(machine.tenant).ok_or(BadRows("a machine has no tenant"))?;
        // A standalone machine and its tenant share one name, and its memory.
        if tenant.name == machine.name {
            machine.name = tenant.name.clone();
        }
        match attention {
            Attention::Due => self.agenda.add(Steady::START, Due::Stranded(id)),
            Attention::Waits => {}
        }
        self.machines.insert(id, machine);
        Ok(())
    }

    /// Rebuilds the works of each tenant from its maintenances.
    fn restore_work(&mut self) {
        for maintenance in self.maintenances.values() {
            let progress = match maintenance.stage {
                Stage::Waiting(_) => Progress::Waiting,
                Stage::Running { .. } => Progress::Running,
            };
            let plan = &maintenance.plan;
            for part in &plan.parts {
                // The tenant of a standalone machine may be gone while other work on it is unfinished.
                if let Some(kind) = plan.cause.work_kind()
                    && let Some(tenant) = self.tenants.get_mut(&part.tenant)
                {
                    let (maintenance, update_domain) = (plan.id, part.update_domain);
                    tenant.add_work(Work { maintenance, update_domain, kind, progress });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(id: u32, name: &str, machines: &[u32]) -> Row {
        Row::Host(HostRow {
            id: HostId(id),
            name: Name::new(name).unwrap(),
            zone: None,
            health: Health::Healthy,
            rollout: None,
            work: None,
            attention: HostAttention::Unneeded,
            fence: Fence::Unneeded,
            mode: None,
            machines: machines.iter().copied().map(MachineId).collect(),
        })
    }

    fn head() -> Row {
        let next = Counters { host: 2, ..Counters::default() };
        Row::Head(Head { seed: Seed([1; 16]), settings: Settings::default(), brake: Brake::default(), next })
    }

    fn restore(rows: &[Row]) -> Result<Cluster, BadRows> {
        let mut restoring = Restoring::default();
        rows.iter().try_for_each(|row| restoring.add(row.clone()))?;
        restoring.finish()
    }

    #[test]
    fn inconsistent_rows_are_rejected() {
        let bad = |rows: &[Row]| restore(rows).unwrap_err().to_string();
        assert!(bad(&[]).ends_with("the head row is missing"));
        assert!(bad(&[host(0, "a", &[]), head()]).ends_with("the head is not the first row"));
        assert!(bad(&[head(), head()]).ends_with("there is more than one head row"));
        assert!(bad(&[head(), host(2, "a", &[])]).ends_with("never assigned"));
        assert!(bad(&[head(), host(0, "a", &[]), host(0, "b", &[])]).ends_with("not unique"));
        assert!(bad(&[head(), host(0, "a", &[]), host(1, "a", &[])]).ends_with("not unique"));
        assert!(bad(&[head(), host(0, "a", &[3, 3])]).ends_with("are not in ascending order"));
        assert!(restore(&[head(), host(0, "a", &[1, 3]), host(1, "b", &[])]).is_ok());
    }

    #[test]
    fn indexes_are_built_at_once_in_full_pages() {
        let next = Counters { host: 4_000, ..Counters::default() };
        let Row::Head(head) = head() else { panic!("a head") };
        let hosts = (0..4_000).map(|id| host(id, &format!("host-{id}"), &[]));
        let rows: Vec<_> = [Row::Head(Head { next, ..head })].into_iter().chain(hosts).collect();
        let cluster = restore(&rows).unwrap();
        // 125 full leaves, and the pages above them. One by one, hashes would leave a third of each leaf empty.
        let names = cluster.host_names.page_count();
        let (open, by_load) = (cluster.open_hosts.page_count(), cluster.open_by_load.page_count());
        assert!([names, open, by_load].iter().all(|pages| *pages <= 131), "{names}, {open}, {by_load}");
        assert_eq!(cluster.host_named("host-1234"), Some(HostId(1_234)));
    }

    #[test]
    fn an_event_needs_its_announcement() {
        let next = Counters { tenant: 1, machine: 1, maintenance: 1, ..Counters::default() };
        let Row::Head(head) = head() else { panic!("a head") };
        let head = Row::Head(Head { next, ..head });
        let tenant = Row::Tenant(TenantRow {
            id: TenantId(0),
            name: Name::new("a").unwrap(),
            shape: Shape::CloudService,
            policy: Policy::default(),
            enrolment: Enrolment::Disabled,
            incarnation: 2,
            machines: Vec::new(),
            events: vec![(
                MaintenanceId(0),
                Phase::Scheduled { not_before: forewarn_types::Timestamp::from_millis(0), approval: None },
            )],
            ended: Vec::new(),
        });
        assert!(restore(&[head, tenant]).unwrap_err().to_string().ends_with("never announced"));
    }
}
