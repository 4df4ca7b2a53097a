//! Instance view of a machine.

use std::time::Duration;

use forewarn_lifecycle::{Cause, EventKind, Impact, MachineId, Maintenance, Timestamp, minimum_notice};
use serde_json::{Value, json};

use super::edit::{put, put_if, text};
use super::model::os_type;
use super::standing::PowerState;
use super::{Provisioning, ShowContext};
use forewarn_imds::OsType;
use forewarn_types::Moment;

/// The version of the agent that a machine would have.
const AGENT_VERSION: &str = "2.15.1.3";

/// Instance view of a machine; `body` is the rest of its response body.
pub(super) fn instance_view(
    context: &ShowContext<'_>,
    id: MachineId,
    body: &Value,
    state: Provisioning,
    since: Option<Timestamp>,
) -> Value {
    let Some(machine) = context.cluster.machine(id) else { return json!({}) };
    let power = PowerState::of(context.cluster, id);
    let mut view = json!({
        "platformUpdateDomain": machine.update_domain.0,
        "platformFaultDomain": machine.fault_domain.0,
    });
    if power == PowerState::Running {
        put_if(&mut view, "computerName", text(body, "properties.osProfile.computerName"));
        put(&mut view, "osName", os_name(body));
    }
    put_if(&mut view, "vmAgent", agent(power, context.now));
    let disk = text(body, "properties.storageProfile.osDisk.name");
    let succeeded = [status_of(Provisioning::Succeeded, since)];
    put_if(&mut view, "disks", disk.map(|name| json!([{ "name": name, "statuses": succeeded }])));
    put_if(&mut view, "maintenanceRedeployStatus", redeploy_status(context, id));
    put(&mut view, "statuses", json!([status_of(state, since), status_of_power(power)]));
    view
}

/// The provisioning state as a status.
pub(super) fn status_of(state: Provisioning, since: Option<Timestamp>) -> Value {
    let (level, words) = match state {
        Provisioning::Succeeded => ("Info", "Provisioning succeeded"),
        Provisioning::Creating => ("Info", "Creating"),
        Provisioning::Updating => ("Info", "Updating"),
        Provisioning::Deleting => ("Info", "Deleting"),
        Provisioning::Failed => ("Error", "Provisioning failed"),
    };
    let mut status = json!({ "code": code_of(state), "level": level, "displayStatus": words });
    put_if(&mut status, "time", since.map(|when| Moment(when).to_string()));
    status
}

/// The code of a state.
pub(super) fn code_of(state: Provisioning) -> String {
    format!("ProvisioningState/{}", state.as_str().to_lowercase())
}

/// Code of a power state.
pub(super) fn code_of_power(power: PowerState) -> String {
    format!("PowerState/{}", power.word())
}

fn status_of_power(power: PowerState) -> Value {
    json!({ "code": code_of_power(power), "level": "Info", "displayStatus": format!("VM {}", power.word()) })
}

fn os_name(body: &Value) -> &'static str {
    let offer = text(body, "properties.storageProfile.imageReference.offer").unwrap_or_default();
    match os_type(body, "properties") {
        OsType::Windows => "Windows",
        OsType::Linux if offer.to_lowercase().contains("ubuntu") => "ubuntu",
        OsType::Linux => "linux",
    }
}

/// Status of the agent in the machine; none while the machine has no host.
fn agent(power: PowerState, now: Timestamp) -> Option<Value> {
    let status = match power {
        PowerState::Running => json!({
            "code": "ProvisioningState/succeeded",
            "level": "Info",
            "displayStatus": "Ready",
            "message": "Guest Agent is running",
            "time": Moment(now).to_string(),
        }),
        PowerState::Starting | PowerState::Stopping | PowerState::Stopped => json!({
            "code": "ProvisioningState/Unavailable",
            "level": "Warning",
            "displayStatus": "Not Ready",
            "message": "VM status blob is found but not yet populated.",
            "time": Moment(now).to_string(),
        }),
        PowerState::Deallocating | PowerState::Deallocated => return None,
    };
    let version = if power == PowerState::Running { AGENT_VERSION } else { "Unknown" };
    Some(json!({ "vmAgentVersion": version, "statuses": [status] }))
}

/// Maintenance that the owner may start: while it is announced that the machine leaves a degraded host.
fn redeploy_status(context: &ShowContext<'_>, id: MachineId) -> Option<Value> {
    let mut works = context.cluster.pending_of(id);
    works.find_map(|work| match work.plan.cause {
        Cause::DegradedHost { fails_in, .. } => Some(redeploy_window(work, id, fails_in)),
        Cause::UserRestart
        | Cause::UserRedeploy
        | Cause::UserDelete(_)
        | Cause::Reimage(_)
        | Cause::Power(_)
        | Cause::Eviction(_)
        | Cause::HostWork { .. }
        | Cause::FailedHost { .. }
        | Cause::Fencing { .. }
        | Cause::HostReturn { .. } => None,
    })
}

/// The owner may start it from the announcement to its end; then the platform does, which takes its usual time.
fn redeploy_window(work: &Maintenance, id: MachineId, fails_in: Duration) -> Value {
    let part = work.plan.parts.iter().find(|part| part.machines.contains(&id));
    let announcement = part.and_then(|part| part.announcement.as_deref());
    let starts = work.plan.not_before;
    let notice = minimum_notice(EventKind::Redeploy).max(fails_in);
    let ends = starts.plus(Impact::Redeploy { to: None }.usual_duration(announcement));
    json!({
        "isCustomerInitiatedMaintenanceAllowed": work.wait().is_some(),
        "preMaintenanceWindowStartTime": Moment(minus(starts, notice)).to_string(),
        "preMaintenanceWindowEndTime": Moment(starts).to_string(),
        "maintenanceWindowStartTime": Moment(starts).to_string(),
        "maintenanceWindowEndTime": Moment(ends).to_string(),
        "lastOperationResultCode": "None",
    })
}

fn minus(when: Timestamp, span: Duration) -> Timestamp {
    Timestamp::from_millis(
        when.millis().saturating_sub_unsigned(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
    )
}
