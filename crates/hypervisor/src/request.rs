//! The request to a driver program and its response, as JSON over a pipe.

use forewarn_lifecycle::{
    Action, Aside, Cluster, EvictionPolicy, HostId, HostOperation, HostTask, HostWork, Impact, Maintenance,
    Target,
};
use serde::{Deserialize, Serialize};

/// The request to carry out an action on a machine or a host. One JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverRequest {
    /// The name of the action: 32 hexadecimal digits. It is the same for every repetition of the request, and no other
    /// action of any cluster has it, so that a program can remember it forever and response `done` again.
    pub action: String,
    pub verb: Verb,
    /// The tenant of the machine; absent for a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The machine; absent for a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The host, or the host on which the machine runs.
    pub host: String,
    /// The target host; absent if the machine stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The cause of an order for a host; absent for a machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<HostCause>,
    /// The operator's words about the work on a host; absent if there are none, and for a machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Length of a pause that ends by itself; for a host, the announced length of the interruption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// The boot count of the machine at the decision. A greater one means that the action has been done. Absent for a
    /// host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boots: Option<u32>,
}

/// The cause of an order for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCause {
    Update,
    NetworkUpdate,
    /// Its machines have been moved live.
    Migration,
    Restart,
    /// It has failed.
    Failed,
}

/// An operation on a machine or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Pause a machine for some seconds, or until it is resumed; memory stays.
    Pause,
    /// Let a paused machine run again.
    Resume,
    Migrate,
    Reboot,
    /// Stop it, and start it elsewhere with a new ephemeral disk.
    Redeploy,
    /// Reinstall its operating-system image.
    Reimage,
    /// Delete it with all its disks.
    Delete,
    /// Switch it off, and release its allocation on the host.
    Deallocate,
    Stop,
    Start,
    /// Carry out the work on a host while its machines are aside.
    UpdateHost,
    /// Restart a host while its machines are aside. Done when the host answers again.
    RebootHost,
    /// Separate a failed host from the disks of its machines. Done when they can no longer write.
    FenceHost,
}

impl Verb {
    /// The JSON value of `verb`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Migrate => "migrate",
            Self::Reboot => "reboot",
            Self::Redeploy => "redeploy",
            Self::Reimage => "reimage",
            Self::Delete => "delete",
            Self::Deallocate => "deallocate",
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Resume => "resume",
            Self::UpdateHost => "update_host",
            Self::RebootHost => "reboot_host",
            Self::FenceHost => "fence_host",
        }
    }
}

/// The response of a driver program. One JSON object with a member `result`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum DriverResponse {
    /// The action is done, now or earlier.
    Done,
    /// The action failed, and must not be retried.
    Failed {
        /// The reason, for people.
        #[serde(default)]
        message: String,
    },
    /// The result is unknown: the request is repeated under the same name.
    Unknown {
        /// The reason, for people.
        #[serde(default)]
        message: String,
        /// False if the request must not be repeated before an operator wants it.
        #[serde(default = "repeats")]
        repeat: bool,
    },
}

fn repeats() -> bool {
    true
}

impl DriverRequest {
    /// The request for an action; `None` if the machine or the host is gone.
    #[must_use]
    pub fn of(cluster: &Cluster, action: Action) -> Option<Self> {
        let machine = match action.target {
            Target::Machine(machine) | Target::Returning(machine) => cluster.machine(machine)?,
            Target::Host(host) => return Self::on_host(cluster, action, host),
        };
        let host = |id: HostId| cluster.host(id).map(|host| host.name.to_string());
        let (verb, seconds) = match action.impact {
            Impact::Pause { seconds } => (Verb::Pause, Some(seconds)),
            Impact::Migrate { .. } => (Verb::Migrate, None),
            Impact::Reboot { .. } => (Verb::Reboot, None),
            Impact::Redeploy { .. } => (Verb::Redeploy, None),
            Impact::Reimage => (Verb::Reimage, None),
            Impact::Evict(EvictionPolicy::Delete) | Impact::Delete => (Verb::Delete, None),
            Impact::Evict(EvictionPolicy::Deallocate) | Impact::Deallocate => (Verb::Deallocate, None),
            Impact::Stop => (Verb::Stop, None),
            Impact::Start { .. } | Impact::Return(Aside::Stopped) => (Verb::Start, None),
            Impact::StepAside(Aside::Paused) => (Verb::Pause, None),
            Impact::StepAside(Aside::Stopped) => (Verb::Stop, None),
            Impact::Return(Aside::Paused) => (Verb::Resume, None),
            // Only hosts have it.
            Impact::OnHost(_) => return None,
        };
        Some(Self {
            action: cluster.action_name(action.maintenance, action.target).to_string(),
            verb,
            tenant: Some(cluster.tenant(machine.tenant)?.name.to_string()),
            machine: Some(machine.name.to_string()),
            host: host(machine.host)?,
            to: action.impact.destination().and_then(host),
            cause: None,
            work: None,
            seconds,
            boots: Some(action.boots),
        })
    }

    /// The request for the step on a host.
    fn on_host(cluster: &Cluster, action: Action, host: HostId) -> Option<Self> {
        let Maintenance { plan, .. } = cluster.maintenance(action.maintenance)?;
        let Impact::OnHost(operation) = action.impact else { return None };
        let task = plan.cause.host_task();
        let text = task.and_then(|task| task.step.as_ref()).and_then(|step| step.text.as_ref());
        Some(Self {
            action: cluster.action_name(action.maintenance, action.target).to_string(),
            verb: match operation {
                HostOperation::Update => Verb::UpdateHost,
                HostOperation::Reboot => Verb::RebootHost,
                HostOperation::Fence => Verb::FenceHost,
            },
            tenant: None,
            machine: None,
            host: cluster.host(host)?.name.to_string(),
            to: None,
            cause: Some(match task.map(|task| task.kind) {
                Some(HostWork::Update) => HostCause::Update,
                Some(HostWork::NetworkUpdate) => HostCause::NetworkUpdate,
                Some(HostWork::Migration) => HostCause::Migration,
                Some(HostWork::Restart) => HostCause::Restart,
                None => HostCause::Failed,
            }),
            work: text.map(ToString::to_string),
            seconds: task.and_then(announced_seconds),
            boots: None,
        })
    }
}

/// The announced length of the interruption by a step. After a live migration it interrupts no machine.
fn announced_seconds(task: &HostTask) -> Option<u32> {
    match task.kind {
        HostWork::Update | HostWork::NetworkUpdate | HostWork::Restart => {
            u32::try_from(task.duration_seconds()).ok()
        }
        HostWork::Migration => task.seconds.map(|seconds| u32::from(seconds.get())),
    }
}
