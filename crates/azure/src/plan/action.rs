//! Actions on machines, as Azure names them, and their commands.

use forewarn_lifecycle::{Cluster, Machine, MachineId, Power, Shape};

use crate::error::ArmError;
use crate::instances::InstanceSelection;
use crate::read::machine::Protection;
use crate::refusals::{not_found, refused};
use forewarn_control::{NamedCommand, full_name};

/// An action on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Restart,
    /// Moves it to another host.
    Redeploy,
    /// Writes its image anew.
    Reimage,
    Start,
    /// Switches it off; it keeps its place.
    PowerOff,
    /// Switches it off; it gives its place up.
    Deallocate,
    /// Carries announced maintenance out now.
    PerformMaintenance,
    /// Applies its state again: no effect.
    Reapply,
    /// Evicts it, as the platform would.
    SimulateEviction,
    Delete,
    /// Applies the latest model of its scale set.
    Upgrade {
        /// Version of the model that brought another image: older instances are reimaged.
        image_since: Option<u32>,
    },
}

impl Action {
    /// The action of a path segment, in any case.
    ///
    /// ```
    /// use forewarn_azure::Action;
    /// assert_eq!(Action::parse("poweroff"), Some(Action::PowerOff));
    /// assert_eq!(Action::parse("explode"), None);
    /// ```
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let known = [
            ("restart", Self::Restart),
            ("redeploy", Self::Redeploy),
            ("reimage", Self::Reimage),
            ("reimageAll", Self::Reimage),
            ("start", Self::Start),
            ("powerOff", Self::PowerOff),
            ("deallocate", Self::Deallocate),
            ("performMaintenance", Self::PerformMaintenance),
            ("reapply", Self::Reapply),
            ("simulateEviction", Self::SimulateEviction),
            ("delete", Self::Delete),
            ("manualUpgrade", Self::Upgrade { image_since: None }),
        ];
        let found = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        found.map(|(_, action)| action)
    }
}

/// The commands of an action on machines. The rules decide whether it is possible.
///
/// # Errors
/// Fails if a machine does not exist.
pub fn plan_action(
    cluster: &Cluster,
    action: Action,
    on: &[MachineId],
) -> Result<Vec<NamedCommand>, ArmError> {
    let mut commands = Vec::new();
    for id in on {
        let machine = cluster.machine(*id).ok_or_else(not_found)?;
        let name = full_name(cluster, *id);
        match action {
            Action::Restart => commands.push(NamedCommand::Restart { machine: name }),
            Action::Redeploy | Action::PerformMaintenance => {
                commands.push(NamedCommand::Redeploy { machine: name });
            }
            Action::Reimage => commands.push(NamedCommand::Reimage { machine: name }),
            Action::Start => commands.push(NamedCommand::Start { machine: name }),
            Action::PowerOff => commands.push(NamedCommand::Stop { machine: name }),
            Action::Deallocate => commands.push(NamedCommand::Deallocate { machine: name }),
            Action::SimulateEviction => commands.push(NamedCommand::Evict { machine: name }),
            Action::Delete if cluster.is_leaving(*id) => {}
            Action::Delete => commands.push(NamedCommand::Delete { machine: name }),
            Action::Reapply => {}
            Action::Upgrade { image_since } => {
                commands.extend(upgrade(cluster, machine, &name, image_since)?);
            }
        }
    }
    Ok(commands)
}

/// The commands of an action on instances of a scale set. If all are selected, those are left out that cannot do it
/// now, and those that are protected from it.
///
/// # Errors
/// Fails if a named instance does not exist.
pub fn plan_instances(
    cluster: &Cluster,
    action: Action,
    chosen: &InstanceSelection,
    protection: &dyn Fn(MachineId) -> Protection,
) -> Result<Vec<NamedCommand>, ArmError> {
    let all = match chosen {
        InstanceSelection::These(these) => return plan_action(cluster, action, these),
        InstanceSelection::All(all) => all,
    };
    let willing = |id: &&MachineId| {
        let machine = cluster.machine(**id);
        let can = machine.is_some_and(|machine| can(action, machine, is_busy(cluster, **id)));
        can && !protection(**id).from_actions
    };
    let willing: Vec<_> = all.iter().filter(willing).copied().collect();
    plan_action(cluster, action, &willing)
}

/// The machine has pending work that excludes other work.
pub(crate) fn is_busy(cluster: &Cluster, machine: MachineId) -> bool {
    cluster.pending_of(machine).any(|work| work.plan.cause.is_requested())
}

/// The machine's state allows the action.
fn can(action: Action, machine: &Machine, is_busy: bool) -> bool {
    match action {
        Action::Restart => machine.power == Power::Running && !is_busy,
        Action::Redeploy | Action::PerformMaintenance | Action::Reimage => {
            machine.power != Power::Deallocated && !is_busy
        }
        Action::Start | Action::PowerOff | Action::Deallocate => !is_busy,
        Action::SimulateEviction => machine.power != Power::Deallocated,
        Action::Reapply | Action::Delete | Action::Upgrade { .. } => true,
    }
}

/// Applies the latest model to an instance, and reimages it if the image is another one.
fn upgrade(
    cluster: &Cluster,
    machine: &Machine,
    name: &str,
    image_since: Option<u32>,
) -> Result<Vec<NamedCommand>, ArmError> {
    let shape = cluster.tenant(machine.tenant).map(|tenant| tenant.shape);
    let Some(Shape::PlacementGroup(set)) = shape else {
        return Err(refused(&forewarn_lifecycle::Refusal::NotAnInstance(machine.name.clone())));
    };
    let latest = cluster.scale_set(set).map_or(0, |set| set.model_version);
    let mut commands = Vec::new();
    if machine.model_version != latest {
        commands.push(NamedCommand::UpgradeInstance { machine: name.to_owned() });
    }
    let has_old_image = image_since.is_some_and(|since| machine.model_version < since);
    if has_old_image && machine.power != Power::Deallocated {
        commands.push(NamedCommand::Reimage { machine: name.to_owned() });
    }
    Ok(commands)
}

#[cfg(test)]
mod tests;
