//! Push messages about steps on hosts that persons carry out.

use serde::Serialize;

use crate::AuditEntry;
use crate::audit::host_notice::HostNotice;
use forewarn_types::Moment;

/// Type of every push message about a host.
pub const HOST_EVENT_TYPE: &str = "Forewarn.HostWork";

/// The content of a message about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPush {
    /// The state of the step.
    pub notice: HostNotice,
    /// The state as a sentence.
    pub text: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Number of the rollout that the step belongs to.
    pub rollout: Option<u64>,
}

impl HostPush {
    /// The content of the message about an audit entry. None if webhooks are not notified of a host.
    pub(super) fn of(entry: &AuditEntry) -> Option<Self> {
        let notice = entry.host_notice.as_deref()?.clone();
        let (text, cluster) = (entry.text.clone(), entry.cluster.clone());
        Some(Self { notice, text, cluster, rollout: entry.rollout })
    }

    /// The host, as the subject of a message.
    pub(super) fn subject(&self) -> String {
        format!("/clusters/{}/hosts/{}", self.cluster, self.notice.host)
    }

    pub(super) fn data(&self) -> HostData<'_> {
        let Self { notice, text, cluster, rollout } = self;
        let HostNotice { host, status, operation, work, since, reminder, reason } = notice;
        HostData {
            host,
            cluster,
            status: status.as_str(),
            text,
            operation,
            work: work.as_deref(),
            since: *since,
            reminder: *reminder,
            reason: reason.as_deref(),
            rollout: *rollout,
        }
    }
}

/// The data of a message about a host.
#[derive(Serialize)]
pub(super) struct HostData<'a> {
    host: &'a str,
    cluster: &'a str,
    status: &'static str,
    text: &'a str,
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<&'a str>,
    since: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    reminder: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<u64>,
}
