//! Finding what an id means: a machine, a scale set or an availability set of the rules, and what clients have written of it.

use forewarn_azure::{
    AVAILABILITY_SETS, ApiVersion, Kept, Provisioning, SCALE_SETS, Sight, VIRTUAL_MACHINES, is_gone,
    plain_availability_set, plain_machine, plain_scale_set,
};
use forewarn_control::resource_id::{GroupId, ResourceId, availability_set_id, scale_set_id};
use forewarn_control::shared::{Entry, Leaving, Link};
use forewarn_lifecycle::{Cluster, MachineId, Orchestration, ScaleSetId, Shape, Tenant, TenantId, Timestamp};
use serde_json::{Value, json};

use crate::arm::place::{self, Group};
use crate::engine::State;
use crate::operator::Permit;

/// The kinds of resources that are in the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On its own, in an availability set, or an instance of a flexible scale set.
    Machine,
    ScaleSet,
    AvailabilitySet,
}

/// Something that is there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) link: Link,
    pub(crate) id: ResourceId,
    /// What clients have written, or what they might have.
    pub(crate) body: Value,
    /// What the server has noted.
    pub(crate) notes: Value,
    /// How often clients have written it.
    pub(crate) edition: u64,
    created: Option<Timestamp>,
    state: Provisioning,
}

impl Kind {
    /// The kind of that type, in any spelling.
    pub(crate) fn of(kind: &str) -> Option<Self> {
        let all = [Self::Machine, Self::ScaleSet, Self::AvailabilitySet];
        all.into_iter().find(|known| known.text().eq_ignore_ascii_case(kind))
    }

    /// The type as clients write it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Machine => VIRTUAL_MACHINES,
            Self::ScaleSet => SCALE_SETS,
            Self::AvailabilitySet => AVAILABILITY_SETS,
        }
    }
}

impl Found {
    /// As it is shown.
    pub(crate) fn kept(&self) -> Kept<'_> {
        Kept { id: &self.id, body: &self.body, etag: self.edition, created: self.created, state: self.state }
    }

    /// The same, while something is done to it.
    pub(crate) fn being(mut self, state: Provisioning) -> Self {
        self.state = state;
        self
    }
}

/// The fleet, as a client looks at it.
pub(crate) fn sight<'a>(state: &'a State<'_>, version: ApiVersion) -> Sight<'a> {
    let State { cluster, site, details, now, .. } = *state;
    Sight { cluster, site, details, seed: &state.seed, now: now.wall, version }
}

/// What an id means, if whoever asks may know.
pub(crate) fn find(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    kind: Kind,
    group: &Group,
    name: &str,
) -> Option<Found> {
    let link = match kind {
        Kind::Machine => Link::Machine(machine_named(state, &group.id, name)?),
        Kind::ScaleSet => Link::ScaleSet(scale_set_named(state, &group.id, name)?),
        Kind::AvailabilitySet => Link::Tenant(availability_set_named(state, &group.id, name)?),
    };
    found(state, (permit, version), link, &group.id)
}

/// What is written of something in the rules, if whoever asks may know of it and it is not gone.
pub(crate) fn found(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    link: Link,
    group: &GroupId,
) -> Option<Found> {
    if !sees(state.cluster, permit, link) {
        return None;
    }
    let entry = state.catalogue.entry_of(state.id, link).map(|(_, entry)| entry);
    if entry.is_some_and(|entry| place::is_gone(state, entry)) {
        return None;
    }
    let sight = sight(state, version);
    let (id, plain) = match link {
        Link::Machine(machine) => {
            if is_gone(state.cluster, machine) {
                return None;
            }
            let name = state.cluster.machine(machine)?.name.as_str();
            (group.resource("Microsoft.Compute", "virtualMachines", name), plain_machine(&sight, machine))
        }
        Link::ScaleSet(set) => {
            (scale_set_id(group, &state.cluster.scale_set(set)?.name), plain_scale_set(&sight, set))
        }
        Link::Tenant(tenant) => {
            let id = availability_set_id(group, &state.cluster.tenant(tenant)?.name);
            (id, plain_availability_set(&sight, tenant))
        }
    };
    Some(of_entry(state, link, entry, (id, plain)))
}

fn of_entry(state: &State<'_>, link: Link, entry: Option<&Entry>, (id, plain): (ResourceId, Value)) -> Found {
    let Some(entry) = entry else {
        let notes = json!({});
        return Found {
            link,
            id,
            body: plain,
            notes,
            edition: 0,
            created: None,
            state: Provisioning::Succeeded,
        };
    };
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_else(|_| json!({}));
    let state = match (entry.leaving, state.catalogue.is_operated_on(&entry.key())) {
        (Leaving::Leaves, _) => Provisioning::Deleting,
        (Leaving::Stays, true) => Provisioning::Updating,
        (Leaving::Stays, false) => Provisioning::Succeeded,
    };
    Found {
        link,
        id: ResourceId::parse(&entry.id).unwrap_or(id),
        body: read(&entry.body.0),
        notes: read(&entry.notes.0),
        edition: entry.edition,
        created: Some(entry.created),
        state,
    }
}

/// Whether whoever asks may know of it.
pub(crate) fn sees(cluster: &Cluster, permit: &Permit, link: Link) -> bool {
    match link {
        Link::Machine(machine) => {
            cluster.machine(machine).is_some_and(|one| permit.sees(cluster, one.tenant))
        }
        Link::Tenant(tenant) => permit.sees(cluster, tenant),
        Link::ScaleSet(set) => cluster.scale_set(set).is_some_and(|set| permit.sees_named(set.name.as_str())),
    }
}

/// The group that something of the rules is in: where clients have put it, or that of the cluster.
pub(crate) fn group_of(state: &State<'_>, link: Link) -> GroupId {
    let home = match link {
        Link::Machine(machine) => state.details.get(&machine).and_then(|details| details.home.as_ref()),
        Link::Tenant(_) | Link::ScaleSet(_) => None,
    };
    let subscription = state.site.subscription.clone();
    if let Some(home) = home {
        return GroupId { subscription, name: home.resource_group.clone() };
    }
    let entry = state.catalogue.entry_of(state.id, link).and_then(|(_, entry)| ResourceId::parse(&entry.id));
    entry.map_or_else(|| GroupId { subscription, name: state.site.resource_group.clone() }, |id| id.group)
}

/// All that the rules have: scale sets, availability sets, then machines that are resources of their own.
pub(crate) fn links<'a>(state: &'a State<'_>) -> impl Iterator<Item = Link> + 'a {
    let cluster = state.cluster;
    let sets = cluster.scale_sets().map(|(id, _)| Link::ScaleSet(id));
    let tenants = cluster.tenants().filter(|(_, tenant)| tenant.shape == Shape::AvailabilitySet);
    let tenants = tenants.map(|(id, _)| Link::Tenant(id));
    let machines = cluster.machines().map(|(id, _)| id).filter(|id| is_machine(cluster, *id));
    sets.chain(tenants).chain(machines.map(Link::Machine))
}

/// Whether something of that kind is in the group of which its id says so.
pub(super) fn is_there(state: &State<'_>, kind: Kind, id: &ResourceId) -> bool {
    match kind {
        Kind::Machine => machine_named(state, &id.group, id.name()).is_some(),
        Kind::ScaleSet => scale_set_named(state, &id.group, id.name()).is_some(),
        Kind::AvailabilitySet => availability_set_named(state, &id.group, id.name()).is_some(),
    }
}

fn is_in(state: &State<'_>, link: Link, group: &GroupId) -> bool {
    group_of(state, link).key() == group.key()
}

fn scale_set_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<ScaleSetId> {
    let exact = state.cluster.scale_set_named(name);
    let any = || {
        let mut all = state.cluster.scale_sets();
        all.find(|(_, set)| set.name.as_str().eq_ignore_ascii_case(name)).map(|(id, _)| id)
    };
    exact.or_else(any).filter(|id| is_in(state, Link::ScaleSet(*id), group))
}

fn availability_set_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<TenantId> {
    let is_one = |tenant: &Tenant| tenant.shape == Shape::AvailabilitySet;
    let exact = state.cluster.tenant_named(name).filter(|id| state.cluster.tenant(*id).is_some_and(is_one));
    let any = || {
        let mut all = state.cluster.tenants();
        all.find(|(_, tenant)| is_one(tenant) && tenant.name.as_str().eq_ignore_ascii_case(name))
            .map(|(id, _)| id)
    };
    exact.or_else(any).filter(|id| is_in(state, Link::Tenant(*id), group))
}

fn machine_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<MachineId> {
    let key = group.resource("Microsoft.Compute", "virtualMachines", name).key();
    let entry = state.catalogue.entry(&key).filter(|entry| entry.cluster == state.id);
    if let Some(Link::Machine(machine)) = entry.and_then(|entry| entry.link) {
        return Some(machine);
    }
    let of_tenant = state.cluster.tenant_named(name).and_then(|id| state.cluster.tenant(id));
    let alone = of_tenant.filter(|tenant| tenant.shape == Shape::StandaloneMachine);
    let alone = alone.and_then(|tenant| tenant.machines().first().copied());
    let any = || {
        let named = state.cluster.machines().filter(|(_, one)| one.name.as_str().eq_ignore_ascii_case(name));
        let mut named = named.map(|(id, _)| id);
        named.find(|id| is_machine(state.cluster, *id) && is_in(state, Link::Machine(*id), group))
    };
    alone.filter(|id| is_in(state, Link::Machine(*id), group)).or_else(any)
}

/// Whether a machine is a virtual machine of its own: role instances and instances of uniform scale sets are not.
pub(crate) fn is_machine(cluster: &Cluster, machine: MachineId) -> bool {
    let tenant = cluster.machine(machine).and_then(|machine| cluster.tenant(machine.tenant));
    tenant.is_some_and(|tenant| match tenant.shape {
        Shape::StandaloneMachine | Shape::AvailabilitySet => true,
        Shape::CloudService => false,
        Shape::PlacementGroup(_) => flexible_set_of(cluster, machine).is_some(),
    })
}

/// The flexible scale set that a machine is an instance of.
pub(crate) fn flexible_set_of(cluster: &Cluster, machine: MachineId) -> Option<ScaleSetId> {
    let tenant = cluster.tenant(cluster.machine(machine)?.tenant)?;
    match tenant.shape {
        Shape::PlacementGroup(set) => {
            (cluster.scale_set(set)?.orchestration == Orchestration::Flexible).then_some(set)
        }
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    }
}
