//! Resources that follow from the rules: operations end with the work that they wait for, and resources go with what
//! they stand for.

use forewarn_lifecycle::{Change, Command, MachineId, MaintenanceId, Shape, Withdrawal};

use super::draft::ClusterDraft;
use crate::command::ResourceGroupRef;
use crate::error::ControlError;
use crate::record::ClusterEntry;
use crate::resource_id::ResourceId;
use crate::resources::{Leaving, Link, OperationResult, Resource, ResourceCommand};
use crate::state::ClusterState;

impl ClusterDraft<'_> {
    /// Decides and applies a change of the resources of a cluster. Returns the number of changes.
    pub(super) fn change_resources(&mut self, command: &ResourceCommand) -> Result<usize, ControlError> {
        let changes = self.cluster().resources().decide(self.now(), self.id, command)?;
        let count = changes.len();
        changes.into_iter().for_each(|change| self.write(ClusterEntry::Resource(change)));
        Ok(count)
    }

    /// The resource group and the location that a client has given a machine, or its scale set.
    pub(super) fn home_of(&self, machine: MachineId) -> Option<ResourceGroupRef> {
        let cluster = self.cluster();
        let (rules, resources) = (cluster.rules(), cluster.resources());
        let own = resources.linked(Link::Machine(machine));
        let of_set = || match rules.tenant(rules.machine(machine)?.tenant)?.shape {
            Shape::PlacementGroup(set) => resources.linked(Link::ScaleSet(set)),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
        };
        let written = [own, of_set()].map(|found| found.map(|(_, resource)| resource));
        let (first, site) = (written.iter().flatten().next()?, cluster.site());
        let location = |resource: &&Resource| {
            let body: serde_json::Value = serde_json::from_slice(&resource.body.0).ok()?;
            Some(body["location"].as_str()?.to_owned())
        };
        let location = written.iter().flatten().find_map(location).unwrap_or_else(|| site.location.clone());
        Some(ResourceGroupRef { resource_group: ResourceId::parse(&first.id)?.group.name, location })
    }

    /// Changes resources after a change of the rules: operations end, and resources go with the objects that they
    /// stand for.
    pub(super) fn follow_up(&mut self, change: &Change) {
        let command = self.work_ended(change).or_else(|| self.gone_with(change));
        if let Some(command) = command {
            let followed = self.change_resources(&command);
            debug_assert!(followed.is_ok(), "the resources refuse what follows from the rules: {followed:?}");
        }
    }

    /// Work that has started, or was withdrawn, ends operations that wait for it.
    fn work_ended(&self, change: &Change) -> Option<ResourceCommand> {
        let (maintenance, result) = if let Change::Started { maintenance, .. } = change {
            (*maintenance, OperationResult::Succeeded)
        } else if let Change::Withdrawn { maintenance, why, .. } = change {
            (self.is_gone(*maintenance).then_some(*maintenance)?, result_of(*why))
        } else {
            return None;
        };
        Some(ResourceCommand::EndWork { maintenance, result })
    }

    /// The resource of an object goes with the object.
    fn gone_with(&self, change: &Change) -> Option<ResourceCommand> {
        let link = if let Change::Completed { target, .. } = change {
            Link::Machine(target.machine()?)
        } else if let Change::MachineForgotten(machine) = change {
            Link::Machine(*machine)
        } else if let Change::TenantRemoved(tenant) = change {
            Link::Tenant(*tenant)
        } else if let Change::ScaleSetRemoved(set) = change {
            Link::ScaleSet(*set)
        } else {
            return None;
        };
        self.resource_if_gone(link).map(ResourceCommand::Remove)
    }

    fn is_gone(&self, maintenance: MaintenanceId) -> bool {
        self.rules().maintenance(maintenance).is_none()
    }

    /// The id of the resource of an object that the rules no longer know.
    fn resource_if_gone(&self, link: Link) -> Option<String> {
        let cluster = self.cluster();
        let rules = cluster.rules();
        let is_there = match link {
            Link::Machine(machine) => rules.machine(machine).is_some(),
            Link::Tenant(tenant) => rules.tenant(tenant).is_some(),
            Link::ScaleSet(set) => rules.scale_set(set).is_some(),
        };
        let (_, resource) = cluster.resources().linked(link)?;
        (!is_there).then(|| resource.id.clone())
    }

    /// Removes the first resource of a cluster that is marked for removal and has nothing left. Returns false if
    /// there is none.
    pub(super) fn sweep(&mut self) -> bool {
        let cluster = self.cluster();
        let leaving: Vec<_> = cluster.resources().leaving().map(str::to_owned).collect();
        leaving.iter().any(|key| self.sweep_one(key))
    }

    fn sweep_one(&mut self, key: &str) -> bool {
        let cluster = self.cluster();
        let Some(resource) = cluster.resources().get(key).cloned() else { return false };
        let command = match fate(cluster, key, &resource) {
            RemovalState::Waits => return false,
            // The resource goes with the object that it stands for, unless something still needs that.
            RemovalState::Goes(Some(command)) => {
                return self.change(&command).is_ok_and(|it| !it.is_empty());
            }
            RemovalState::Goes(None) => ResourceCommand::Remove(resource.id),
            RemovalState::Stays => ResourceCommand::Mark { id: resource.id, leaving: Leaving::Stays },
        };
        self.change_resources(&command).is_ok_and(|changes| changes > 0)
    }
}

/// Decides what happens to a resource that is marked for removal.
fn fate(cluster: &ClusterState, key: &str, resource: &Resource) -> RemovalState {
    let rules = cluster.rules();
    let of = |machines: Vec<MachineId>, command| {
        if machines.is_empty() {
            return RemovalState::Goes(Some(command));
        }
        // A machine that could not be deleted keeps its set.
        if machines.iter().any(|machine| rules.is_leaving(*machine)) {
            RemovalState::Waits
        } else {
            RemovalState::Stays
        }
    };
    match resource.link {
        Some(Link::ScaleSet(id)) => match rules.scale_set(id) {
            None => RemovalState::Goes(None),
            Some(set) => {
                let groups = set.groups.iter().filter_map(|group| rules.tenant(*group));
                let machines = groups.flat_map(|tenant| tenant.machines().iter().copied()).collect();
                of(machines, Command::RemoveScaleSet(id))
            }
        },
        Some(Link::Tenant(id)) => match rules.tenant(id) {
            None => RemovalState::Goes(None),
            Some(tenant) => of(tenant.machines().to_vec(), Command::RemoveTenant(id)),
        },
        Some(Link::Machine(_)) => RemovalState::Waits,
        None => fate_of_group(cluster, key),
    }
}

fn fate_of_group(cluster: &ClusterState, key: &str) -> RemovalState {
    let leaves = |inside: &Resource| {
        inside.leaving == Leaving::Leaves
            || matches!(inside.link, Some(Link::Machine(machine)) if cluster.rules().is_leaving(machine))
    };
    let mut inside = cluster.resources().below(&format!("{key}/")).map(|(_, inside)| inside).peekable();
    if inside.peek().is_none() {
        return RemovalState::Goes(None);
    }
    // A group that waits is examined with every decision: the first resource that leaves is enough.
    if inside.any(leaves) { RemovalState::Waits } else { RemovalState::Stays }
}

/// The future of a resource that is marked for removal.
enum RemovalState {
    /// Something of it is still there.
    Waits,
    /// Nothing is left of it: it goes by itself, or with this command.
    Goes(Option<Command>),
    /// Its machines will stay.
    Stays,
}

fn result_of(why: Withdrawal) -> OperationResult {
    match why {
        Withdrawal::Cancelled | Withdrawal::Postponed => OperationResult::Canceled,
        Withdrawal::Superseded
        | Withdrawal::Unconcerned
        | Withdrawal::HostFailed
        | Withdrawal::HostRecovered
        | Withdrawal::NoReturn => OperationResult::Failed {
            code: "OperationPreempted".to_owned(),
            message: "The operation has been preempted by a more recent operation.".to_owned(),
        },
    }
}
