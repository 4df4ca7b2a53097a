//! Notices about steps on hosts: those that persons carry out, and those that failed. They are the part of an audit entry
//! from which push messages about hosts are made.

use forewarn_lifecycle::{Cluster, HostId, HostOperation, HostPhase, HostTask, MaintenanceId, Timestamp};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::host_work::work_text;

/// The state of a step on a host that a person carries out, or that failed, for push messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostNotice {
    /// Name of the host.
    pub host: String,
    /// State of the step.
    pub status: HostNoticeStatus,
    /// `update` or `reboot`.
    #[schemars(extend("enum" = ["update", "reboot"]))]
    pub operation: String,
    /// The work, in the words of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Time since which the host is ready.
    pub since: Moment,
    /// Number of the reminder; absent if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<u32>,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// State of a step on a host for webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum HostNoticeStatus {
    /// The machines of the host are aside: a person can begin.
    Ready,
    /// The host is still ready.
    Reminder,
    /// The work is done.
    Completed,
    /// The work failed, or was given up.
    Failed,
}

impl HostNoticeStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Reminder => "Reminder",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

impl HostNotice {
    /// The notice about a step that is in progress. None if there is no such step.
    pub(crate) fn of_step(
        cluster: &Cluster,
        (work, host): (MaintenanceId, HostId),
        status: HostNoticeStatus,
    ) -> Option<Self> {
        let (name, maintenance) = (&cluster.host(host)?.name, cluster.maintenance(work)?);
        let operation = maintenance.plan.cause.host_task().and_then(HostTask::operation)?;
        let since = step_since(cluster, work, host)?;
        Some(Self {
            host: name.to_string(),
            status,
            operation: match operation {
                HostOperation::Update => "update".to_owned(),
                HostOperation::Reboot => "reboot".to_owned(),
                HostOperation::Fence => "fence".to_owned(),
            },
            work: work_text(&maintenance.plan),
            since: Moment(since),
            reminder: None,
            reason: None,
        })
    }
}

/// The time at which a step on a host was requested. None if the host is not in its step.
pub(crate) fn step_since(cluster: &Cluster, work: MaintenanceId, host: HostId) -> Option<Timestamp> {
    match cluster.maintenance(work)?.steps()?.hosts.get(&host)? {
        HostPhase::Step { since } => Some(*since),
        HostPhase::Aside { .. } => None,
    }
}
