//! Looks up the machine, scale set or availability set of an id, and the body that clients have written of it.

use forewarn_control::Permit;
use forewarn_control::resource_id::{GroupId, ResourceId, availability_set_id, scale_set_id};
use forewarn_control::resources::{Leaving, Link, Resource};
use forewarn_lifecycle::{Cluster, MachineId, Orchestration, ScaleSetId, Shape, Tenant, TenantId, Timestamp};
use forewarn_server::State;
use forewarn_server::{ResourceGroup, group_of, is_removed};
use serde_json::{Value, json};

use crate::{
    AVAILABILITY_SETS, ApiVersion, Protection, Provisioning, SCALE_SETS, ShowContext, StoredResource,
    VIRTUAL_MACHINES, is_gone, plain_availability_set, plain_machine, plain_scale_set, read_protection,
};

/// Kinds of compute resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComputeKind {
    /// A standalone machine, one of an availability set, or an instance of a flexible scale set.
    Machine,
    ScaleSet,
    AvailabilitySet,
}

/// A compute resource that exists.
#[derive(Clone, Debug)]
pub(crate) struct FoundResource {
    pub(crate) link: Link,
    pub(crate) id: ResourceId,
    /// Body that clients have written, or a plain one.
    pub(crate) body: Value,
    /// Notes of the server.
    pub(crate) notes: Value,
    /// Number of writes by clients.
    pub(crate) edition: u64,
    created: Option<Timestamp>,
    state: Provisioning,
}

impl ComputeKind {
    /// All kinds, in the order of lists: sets first, then machines.
    pub(crate) const ALL: [Self; 3] = [Self::ScaleSet, Self::AvailabilitySet, Self::Machine];

    /// The kind of a resource type, in any case.
    pub(crate) fn of(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.text().eq_ignore_ascii_case(kind))
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Machine => VIRTUAL_MACHINES,
            Self::ScaleSet => SCALE_SETS,
            Self::AvailabilitySet => AVAILABILITY_SETS,
        }
    }
}

impl FoundResource {
    /// The part that is shown.
    pub(crate) fn stored(&self) -> StoredResource<'_> {
        StoredResource {
            id: &self.id,
            body: &self.body,
            etag: self.edition,
            created: self.created,
            state: self.state,
        }
    }

    /// The resource with another provisioning state.
    pub(crate) fn being(mut self, state: Provisioning) -> Self {
        self.state = state;
        self
    }
}

/// Context for showing resources in an api-version.
pub(crate) fn show_context<'a>(state: &'a State<'_>, version: ApiVersion) -> ShowContext<'a> {
    let State { cluster, site, details, now, .. } = *state;
    ShowContext { cluster, site, details, seed: &state.seed, now: now.wall, version }
}

/// The resource of a name within the permit.
pub(crate) fn find(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    kind: ComputeKind,
    group: &ResourceGroup,
    name: &str,
) -> Option<FoundResource> {
    let link = match kind {
        ComputeKind::Machine => Link::Machine(machine_named(state, &group.id, name)?),
        ComputeKind::ScaleSet => Link::ScaleSet(scale_set_named(state, &group.id, name)?),
        ComputeKind::AvailabilitySet => Link::Tenant(availability_set_named(state, &group.id, name)?),
    };
    found(state, (permit, version), link, &group.id)
}

/// The resource of a link within the permit, unless it is gone.
pub(crate) fn found(
    state: &State<'_>,
    (permit, version): (&Permit, ApiVersion),
    link: Link,
    group: &GroupId,
) -> Option<FoundResource> {
    if !sees(state.cluster, permit, link) {
        return None;
    }
    let entry = state.durable.resources().linked(link).map(|(_, entry)| entry);
    if entry.is_some_and(|entry| is_removed(state, entry)) {
        return None;
    }
    let context = show_context(state, version);
    let (id, plain) = match link {
        Link::Machine(machine) => {
            if is_gone(state.cluster, machine) {
                return None;
            }
            let name = state.cluster.machine(machine)?.name.as_str();
            (group.resource("Microsoft.Compute", "virtualMachines", name), plain_machine(&context, machine))
        }
        Link::ScaleSet(set) => {
            (scale_set_id(group, &state.cluster.scale_set(set)?.name), plain_scale_set(&context, set))
        }
        Link::Tenant(tenant) => {
            let id = availability_set_id(group, &state.cluster.tenant(tenant)?.name);
            (id, plain_availability_set(&context, tenant))
        }
    };
    Some(of_entry(state, link, entry, (id, plain)))
}

fn of_entry(
    state: &State<'_>,
    link: Link,
    entry: Option<&Resource>,
    (id, plain): (ResourceId, Value),
) -> FoundResource {
    let Some(entry) = entry else {
        let notes = json!({});
        return FoundResource {
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
    let state = match (entry.leaving, state.all.is_operated_on(entry)) {
        (Leaving::Leaves, _) => Provisioning::Deleting,
        (Leaving::Stays, true) => Provisioning::Updating,
        (Leaving::Stays, false) => Provisioning::Succeeded,
    };
    FoundResource {
        link,
        id: ResourceId::parse(&entry.id).unwrap_or(id),
        body: read(&entry.body.0),
        notes: read(&entry.notes.0),
        edition: entry.edition,
        created: Some(entry.created),
        state,
    }
}

/// Body that clients have written of an instance itself, and the number of writes.
pub(super) fn own(state: &State<'_>, machine: MachineId) -> (Option<Value>, u64) {
    let entry = state.durable.resources().linked(Link::Machine(machine)).map(|(_, entry)| entry);
    let body = entry.and_then(|entry| serde_json::from_slice(&entry.body.0).ok());
    (body, entry.map_or(0, |entry| entry.edition))
}

/// Protection of an instance.
pub(super) fn protection(state: &State<'_>, machine: MachineId) -> Protection {
    own(state, machine).0.and_then(|own| read_protection(&own).ok()).unwrap_or_default()
}

/// The resource is within the permit.
pub(crate) fn sees(cluster: &Cluster, permit: &Permit, link: Link) -> bool {
    match link {
        Link::Machine(machine) => {
            cluster.machine(machine).is_some_and(|one| permit.sees(cluster, one.tenant))
        }
        Link::Tenant(tenant) => permit.sees(cluster, tenant),
        Link::ScaleSet(set) => cluster.scale_set(set).is_some_and(|set| permit.sees_named(set.name.as_str())),
    }
}

/// The object is a resource of its own.
pub(crate) fn is_resource(state: &State<'_>, link: Link) -> bool {
    match link {
        Link::Machine(machine) => is_machine(state.cluster, machine),
        Link::ScaleSet(_) => true,
        Link::Tenant(id) => {
            state.cluster.tenant(id).is_some_and(|tenant| tenant.shape == Shape::AvailabilitySet)
        }
    }
}

/// A resource of that kind exists in the group of the id.
pub(super) fn is_there(state: &State<'_>, kind: ComputeKind, id: &ResourceId) -> bool {
    match kind {
        ComputeKind::Machine => machine_named(state, &id.group, id.name()).is_some(),
        ComputeKind::ScaleSet => scale_set_named(state, &id.group, id.name()).is_some(),
        ComputeKind::AvailabilitySet => availability_set_named(state, &id.group, id.name()).is_some(),
    }
}

fn is_in(state: &State<'_>, link: Link, group: &GroupId) -> bool {
    group_of(state, link).key() == group.key()
}

fn scale_set_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<ScaleSetId> {
    let exact = state.cluster.scale_set_named(name);
    let any = || state.cluster.scale_sets_named_in_any_case(name).next().map(|(id, _)| id);
    exact.or_else(any).filter(|id| is_in(state, Link::ScaleSet(*id), group))
}

fn availability_set_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<TenantId> {
    let is_one = |tenant: &Tenant| tenant.shape == Shape::AvailabilitySet;
    let exact = state.cluster.tenant_named(name).filter(|id| state.cluster.tenant(*id).is_some_and(is_one));
    let any = || {
        let mut named = state.cluster.tenants_named_in_any_case(name);
        named.find(|(_, tenant)| is_one(tenant)).map(|(id, _)| id)
    };
    exact.or_else(any).filter(|id| is_in(state, Link::Tenant(*id), group))
}

fn machine_named(state: &State<'_>, group: &GroupId, name: &str) -> Option<MachineId> {
    let key = group.resource("Microsoft.Compute", "virtualMachines", name).key();
    let entry = state.all.resource(&key).filter(|entry| entry.cluster == state.id);
    if let Some(Link::Machine(machine)) = entry.and_then(|entry| entry.link) {
        return Some(machine);
    }
    let of_tenant = state.cluster.tenant_named(name).and_then(|id| state.cluster.tenant(id));
    let alone = of_tenant.filter(|tenant| tenant.shape == Shape::StandaloneMachine);
    let alone = alone.and_then(|tenant| tenant.machines().first().copied());
    let any = || {
        let mut named = state.cluster.machines_named_in_any_case(name).map(|(id, _)| id);
        named.find(|id| is_machine(state.cluster, *id) && is_in(state, Link::Machine(*id), group))
    };
    alone.filter(|id| is_in(state, Link::Machine(*id), group)).or_else(any)
}

/// A machine is a resource of its own, unless it is a role instance or an instance of a uniform scale set.
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
