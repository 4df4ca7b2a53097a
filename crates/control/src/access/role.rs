//! The role that a command needs, and the tenants that it affects.
//!
//! Operators work on existing machines and hosts, and choose the number of instances of a scale set. Admins add and
//! remove objects and change how they behave. A token that is limited to tenants may run the commands of operators
//! that affect no other tenant: not those on hosts, rollouts or the brake.

use forewarn_lifecycle::{Cluster, Command, HostId, Name, TenantId};

use super::scope::is_in_scope;
use crate::command::lookup::machine_if_known;
use crate::command::{NamedCommand, Resolved, find_event};
use crate::shared::{Reach, Role};

/// The object of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandTarget<'a> {
    Machine(&'a str),
    Tenant(&'a str),
    /// A scale set that grows, on that host.
    ScaleSet(&'a str, &'a str),
    /// The work behind an event, and with it every tenant of the work.
    Event(&'a str),
    /// Everything that tenants share.
    Everybody,
}

/// The lowest role that may run a command.
pub(crate) fn needs(command: &NamedCommand) -> Role {
    use NamedCommand as C;
    match command {
        C::Restart { .. }
        | C::Redeploy { .. }
        | C::Delete { .. }
        | C::Reimage { .. }
        | C::Evict { .. }
        | C::Stop { .. }
        | C::Start { .. }
        | C::Deallocate { .. }
        | C::UpgradeInstance { .. }
        | C::UpdateHosts { .. }
        | C::UpdateNetwork { .. }
        | C::MigrateHosts { .. }
        | C::RebootHosts { .. }
        | C::StartRollout(_)
        | C::PauseRollout { .. }
        | C::ResumeRollout { .. }
        | C::ChangeRollout { .. }
        | C::CancelRollout { .. }
        | C::DegradeHost { .. }
        | C::FailHost { .. }
        | C::RecoverHost { .. }
        | C::CompleteHost { .. }
        | C::RetryHost { .. }
        | C::GiveUpHost { .. }
        | C::ClearHost { .. }
        | C::EnterMaintenance(_)
        | C::ExitMaintenance { .. }
        | C::Retry { .. }
        | C::GiveUp { .. }
        | C::Approve { .. }
        | C::Cancel { .. }
        | C::ForceStart { .. }
        | C::BrakeOn {}
        | C::BrakeOff {}
        | C::Jam { .. } => Role::Operator,
        // A machine is identified by the addresses that it calls from: only an admin may set them.
        C::AdmitInstance { instance, .. } if instance.addresses.is_empty() => Role::Operator,
        C::AdmitHost(_)
        | C::RemoveHost { .. }
        | C::ForgetHost { .. }
        | C::Forget { .. }
        | C::Move { .. }
        | C::AdmitVm(_)
        | C::AdmitAvailabilitySet(_)
        | C::AdmitCloudService(_)
        | C::AdmitMachine { .. }
        | C::AdmitScaleSet(_)
        | C::AdmitInstance { .. }
        | C::RemoveTenant { .. }
        | C::RemoveScaleSet { .. }
        | C::ChangePolicy { .. }
        | C::ChangeWindows { .. }
        | C::ChangeModel { .. }
        | C::ReviseModel { .. }
        | C::ChangeUpgradePolicy { .. }
        | C::ChangeProfile { .. }
        | C::ChangeCapacity { .. }
        | C::Resize { .. }
        | C::ResizeInstances { .. }
        | C::Describe { .. }
        | C::ChangeSite(_)
        | C::ChangeSettings(_) => Role::Admin,
    }
}

/// Commands of an admin affect all tenants: no admin is limited to tenants.
fn subject(command: &NamedCommand) -> CommandTarget<'_> {
    use NamedCommand as C;
    match command {
        C::Restart { machine }
        | C::Redeploy { machine }
        | C::Delete { machine }
        | C::Reimage { machine }
        | C::Evict { machine }
        | C::Stop { machine }
        | C::Start { machine }
        | C::Deallocate { machine }
        | C::UpgradeInstance { machine }
        | C::Jam { machine } => CommandTarget::Machine(machine),
        C::Approve { tenant, .. } => CommandTarget::Tenant(tenant),
        C::AdmitInstance { scale_set, instance } => CommandTarget::ScaleSet(scale_set, &instance.host),
        C::Cancel { event } | C::ForceStart { event } => CommandTarget::Event(event),
        C::UpdateHosts { .. }
        | C::UpdateNetwork { .. }
        | C::MigrateHosts { .. }
        | C::RebootHosts { .. }
        | C::StartRollout(_)
        | C::PauseRollout { .. }
        | C::ResumeRollout { .. }
        | C::ChangeRollout { .. }
        | C::CancelRollout { .. }
        | C::DegradeHost { .. }
        | C::FailHost { .. }
        | C::RecoverHost { .. }
        | C::CompleteHost { .. }
        | C::RetryHost { .. }
        | C::GiveUpHost { .. }
        | C::ClearHost { .. }
        | C::EnterMaintenance(_)
        | C::ExitMaintenance { .. }
        | C::Retry { .. }
        | C::GiveUp { .. }
        | C::BrakeOn {}
        | C::BrakeOff {}
        | C::AdmitHost(_)
        | C::RemoveHost { .. }
        | C::ForgetHost { .. }
        | C::Forget { .. }
        | C::Move { .. }
        | C::AdmitVm(_)
        | C::AdmitAvailabilitySet(_)
        | C::AdmitCloudService(_)
        | C::AdmitMachine { .. }
        | C::AdmitScaleSet(_)
        | C::RemoveTenant { .. }
        | C::RemoveScaleSet { .. }
        | C::ChangePolicy { .. }
        | C::ChangeWindows { .. }
        | C::ChangeModel { .. }
        | C::ReviseModel { .. }
        | C::ChangeUpgradePolicy { .. }
        | C::ChangeProfile { .. }
        | C::ChangeCapacity { .. }
        | C::Resize { .. }
        | C::ResizeInstances { .. }
        | C::Describe { .. }
        | C::ChangeSite(_)
        | C::ChangeSettings(_) => CommandTarget::Everybody,
    }
}

/// The host that a command names, of those that a token limited to tenants may have.
pub(crate) fn named_host(command: &NamedCommand) -> Option<&str> {
    match subject(command) {
        CommandTarget::ScaleSet(_, host) => Some(host),
        CommandTarget::Machine(_)
        | CommandTarget::Tenant(_)
        | CommandTarget::Event(_)
        | CommandTarget::Everybody => None,
    }
}

/// The tenants that a command affects, if it affects no more than can be named. A missing object affects no tenant that
/// could be named.
pub(crate) fn tenants_of(command: &NamedCommand, cluster: &Cluster) -> Option<Vec<TenantId>> {
    match subject(command) {
        CommandTarget::Machine(name) => {
            let machine = machine_if_known(cluster, name)?;
            Some(vec![cluster.machine(machine)?.tenant])
        }
        CommandTarget::Tenant(name) => Some(vec![cluster.tenant_named(name)?]),
        CommandTarget::ScaleSet(name, host) => {
            cluster.host_named(host)?;
            Some(cluster.scale_set(cluster.scale_set_named(name)?)?.groups.clone())
        }
        CommandTarget::Event(id) => {
            let (tenant, event) = find_event(cluster, id).ok()?;
            let work = cluster.maintenance(event.maintenance)?;
            Some(work.plan.parts.iter().map(|part| part.tenant).chain([tenant]).collect())
        }
        CommandTarget::Everybody => None,
    }
}

/// The same for a resolved command: no name is looked up again.
fn tenants_of_resolved(
    command: &NamedCommand,
    resolved: &Resolved,
    cluster: &Cluster,
) -> Option<Vec<TenantId>> {
    if subject(command) == CommandTarget::Everybody {
        None
    } else if let Resolved::Rules(Command::Approve { tenant, .. }) = resolved {
        Some(vec![*tenant])
    } else if let Resolved::Admit(Command::AdmitInstance { scale_set, .. }, _) = resolved {
        Some(cluster.scale_set(*scale_set)?.groups.clone())
    } else if let Resolved::Rules(Command::Cancel(work) | Command::ForceStart(work)) = resolved {
        Some(cluster.maintenance(*work)?.plan.parts.iter().map(|part| part.tenant).collect())
    } else {
        Some(vec![cluster.machine(resolved.machine()?)?.tenant])
    }
}

/// The host that a resolved command names, of those that a token limited to tenants may have.
pub(crate) fn host_of_resolved(resolved: &Resolved) -> Option<HostId> {
    let Resolved::Admit(Command::AdmitInstance { placement, .. }, _) = resolved else { return None };
    Some(placement.host)
}

/// Returns true if a command affects these tenants only.
pub(crate) fn is_within(command: &NamedCommand, cluster: &Cluster, tenants: &Reach<Name>) -> bool {
    tenants.is_all() || are_within(cluster, tenants, tenants_of(command, cluster))
}

/// The same for a resolved command.
pub(crate) fn is_resolved_within(
    command: &NamedCommand,
    resolved: &Resolved,
    cluster: &Cluster,
    tenants: &Reach<Name>,
) -> bool {
    tenants.is_all() || are_within(cluster, tenants, tenants_of_resolved(command, resolved, cluster))
}

fn are_within(cluster: &Cluster, tenants: &Reach<Name>, touched: Option<Vec<TenantId>>) -> bool {
    let is_one = |tenant: &TenantId| is_in_scope(cluster, *tenant, tenants);
    touched.is_some_and(|touched| !touched.is_empty() && touched.iter().all(is_one))
}

#[cfg(test)]
mod tests;
