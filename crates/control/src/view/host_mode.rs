//! Maintenance mode of hosts, as operators see it.

use forewarn_lifecycle::{
    Cluster, HostId, HostOperation, HostTask, Leaving, MaintenanceMode, ModeProgress, ModeStep, Obstacle,
    Standing,
};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::host_mode::LeavingWord;
use crate::command::lookup::full_name;
use crate::view::describe::{in_the_way, progress};

/// The maintenance mode of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaintenanceModeView {
    /// `entering` while machines are to leave or the work on the host is to be done, `entered`, or `incomplete` if the
    /// work has ended and a machine is still there, or the work on the host has not been done.
    #[schemars(extend("enum" = ["entering", "entered", "incomplete"]))]
    pub state: String,
    /// Its state in a sentence: `3 of 5 machines have left`.
    pub text: String,
    /// Time of the first command by which the host entered.
    pub since: Moment,
    /// The way in which the remaining machines leave.
    #[serde(rename = "move")]
    pub leaving: LeavingWord,
    /// The machines that left because of it, as `tenant/name`.
    pub left: Vec<String>,
    /// The machines that have not left, as `tenant/name`.
    pub remaining: Vec<String>,
    /// The work on the empty host: `asked`, `done` or `failed`; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["asked", "done", "failed", null]))]
    pub step: Option<String>,
}

/// The view of the maintenance mode of a host; none if it is in normal use.
pub(crate) fn mode_view(cluster: &Cluster, id: HostId) -> Option<MaintenanceModeView> {
    let mode = cluster.host(id)?.mode.as_deref()?;
    let state = match cluster.mode_progress(id)? {
        ModeProgress::Entering => "entering",
        ModeProgress::Entered => "entered",
        ModeProgress::Incomplete => "incomplete",
    };
    let left = mode.left.iter().filter(|(machine, _)| cluster.machine(*machine).is_some());
    let remaining = cluster.remaining_on(id);
    Some(MaintenanceModeView {
        state: state.to_owned(),
        text: mode_text(cluster, id)?,
        since: Moment(mode.since),
        leaving: mode.leaving().into(),
        left: left.map(|(machine, _)| full_name(cluster, *machine)).collect(),
        remaining: remaining.into_iter().map(|machine| full_name(cluster, machine)).collect(),
        step: step_word(mode).map(str::to_owned),
    })
}

fn step_word(mode: &MaintenanceMode) -> Option<&'static str> {
    match mode.step {
        ModeStep::Untaken => mode.task.step.is_some().then_some("asked"),
        ModeStep::Done => Some("done"),
        ModeStep::Failed => Some("failed"),
    }
}

/// The progress of a host in maintenance mode, in words; none if it is in normal use.
#[must_use]
pub fn mode_text(cluster: &Cluster, id: HostId) -> Option<String> {
    let mode = cluster.host(id)?.mode.as_deref()?;
    let state = cluster.mode_progress(id)?;
    let (left, remaining) = (mode.left.len(), cluster.remaining_on(id).len());
    let stops = |way: Leaving| way == Leaving::Stop;
    let is_off = stops(mode.leaving()) || mode.left.iter().any(|(_, way)| stops(*way));
    let off = if is_off { " or are off" } else { "" };
    let gone = match (left + remaining, remaining) {
        (0, _) => "no machine had to leave".to_owned(),
        (1, 0) if is_off => "1 machine has left or is off".to_owned(),
        (1, 0) => "1 machine has left".to_owned(),
        (all, 0) => format!("{all} machines have left{off}"),
        (all, _) => format!("{left} of {all} machines have left{off}"),
    };
    let step = mode.task.operation().map(|operation| step_text(mode, operation));
    let waits = (state == ModeProgress::Entering).then(|| awaited(cluster, id, mode)).flatten();
    let all = [Some(gone), step, waits];
    Some(all.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn step_text(mode: &MaintenanceMode, operation: HostOperation) -> String {
    let what = match operation {
        HostOperation::Update => "update",
        HostOperation::Reboot => "restart",
        HostOperation::Fence => "fence",
    };
    let text = mode.task.step.as_deref().and_then(|step| step.text.as_ref());
    let text = text.map(|text| format!(" ({text})")).unwrap_or_default();
    let state = match mode.step {
        ModeStep::Untaken => "not done yet",
        ModeStep::Done => "done",
        ModeStep::Failed => "failed",
    };
    format!("{what} of the host{text}: {state}")
}

/// The condition that the work waits for.
fn awaited(cluster: &Cluster, id: HostId, mode: &MaintenanceMode) -> Option<String> {
    let host = cluster.host(id)?;
    if let Some(work) = cluster.mode_work(host) {
        return Some(progress(work));
    }
    match cluster.rollout(mode.rollout?)?.standing {
        Standing::Room(Obstacle::NoHost) => {
            let stuck = cluster.machine_without_host(id).map(|machine| full_name(cluster, machine));
            Some(format!("no other host can take {}", stuck.as_deref().unwrap_or("a machine")))
        }
        Standing::Room(obstacle) => Some(in_the_way(obstacle).to_owned()),
        Standing::Brake => Some("the brake is on".to_owned()),
        Standing::TenantWindow { tenant, announces } => {
            let tenant = cluster.tenant(tenant).map_or("a tenant", |tenant| tenant.name.as_str());
            Some(match announces {
                Some(at) => format!("the windows of {tenant}: announced at {}", Moment(at)),
                None => format!("the windows of {tenant} never permit it"),
            })
        }
        Standing::Paused => Some("its rollout is paused".to_owned()),
        Standing::Next
        | Standing::Works(_)
        | Standing::Rests { .. }
        | Standing::Window { .. }
        | Standing::Unwell
        | Standing::Unconfirmed => None,
    }
}

/// The task of maintenance mode, for the audit log: how machines leave, and the step.
pub(crate) fn task_text(task: &HostTask, leaving: LeavingWord) -> String {
    let how = match leaving {
        LeavingWord::Live => "its machines are moved live",
        LeavingWord::Redeploy => "its machines are redeployed",
        LeavingWord::Stop => "its machines are stopped",
    };
    let what = match task.operation() {
        Some(HostOperation::Update) => ", then it is updated",
        Some(HostOperation::Reboot) => ", then it is restarted",
        Some(HostOperation::Fence) => ", then it is fenced",
        None => "",
    };
    format!("{how}{what}")
}
