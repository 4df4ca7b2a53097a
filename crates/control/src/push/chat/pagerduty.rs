//! Events of PagerDuty (Events API v2): an alert for each event and for each host that is ready for work.
//!
//! An alert is triggered when its event is scheduled, and again when it starts: PagerDuty adds the second trigger to the
//! open alert, and an event that starts at once has no first one. The end resolves it. A failure does not: it leaves
//! the alert open, with a higher severity, until a person resolves it. Fields and limits:
//! <https://developer.pagerduty.com/docs/send-alert-event>.

use std::str::FromStr;

use forewarn_types::EventKind;
use serde_json::{Value, json};

use super::{ChatNote, clip, date};
use crate::audit::host_notice::HostNoticeStatus;
use crate::audit::notice::{Notice, NoticeStatus};
use crate::push::HostPush;
use crate::push::message::{Push, PushContent};

/// Bytes of a summary, which may have as many characters.
pub(super) const SUMMARY_BYTES_MAX: usize = 1_024;

/// Machines in the details of an alert.
const MACHINES_MAX: usize = 50;

/// Change of an alert.
enum AlertAction {
    Trigger(Severity),
    Resolve,
}

/// Severity of an alert.
#[derive(Clone, Copy)]
enum Severity {
    Critical,
    Error,
    Warning,
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    /// Severity of an event by its effect on the machines.
    fn of_kind(kind: &str) -> Self {
        match EventKind::from_str(kind) {
            Ok(EventKind::Freeze) => Self::Info,
            Ok(EventKind::Reboot | EventKind::Redeploy) | Err(_) => Self::Warning,
            Ok(EventKind::Preempt | EventKind::Terminate) => Self::Error,
        }
    }
}

pub(super) fn body(push: &Push, note: &ChatNote, key: &str) -> String {
    match action(push) {
        AlertAction::Resolve => resolve(push, key),
        AlertAction::Trigger(severity) => {
            let first = note.lines.first().map(|line| format!(". {line}")).unwrap_or_default();
            let Alert { source, class, group, details } = Alert::of(push);
            json!({
                "routing_key": key,
                "event_action": "trigger",
                "dedup_key": dedup_key(push),
                "client": "Forewarn",
                "payload": {
                    "summary": clip(&format!("{}{first}", note.title), SUMMARY_BYTES_MAX),
                    "source": source,
                    "severity": severity.as_str(),
                    "timestamp": push.at.to_string(),
                    "class": class,
                    "group": group,
                    "custom_details": with_lines(details, note),
                },
            })
            .to_string()
        }
    }
}

/// The body that resolves an alert.
pub(super) fn resolve(push: &Push, key: &str) -> String {
    json!({ "routing_key": key, "event_action": "resolve", "dedup_key": dedup_key(push) }).to_string()
}

fn action(push: &Push) -> AlertAction {
    match &push.content {
        PushContent::Event(Notice { status, kind, failures, .. }) => match status {
            NoticeStatus::Scheduled | NoticeStatus::Started => AlertAction::Trigger(Severity::of_kind(kind)),
            NoticeStatus::Completed if !failures.is_empty() => AlertAction::Trigger(Severity::Critical),
            NoticeStatus::Completed | NoticeStatus::Canceled => AlertAction::Resolve,
        },
        PushContent::Host(HostPush { notice, .. }) => match notice.status {
            HostNoticeStatus::Ready | HostNoticeStatus::Reminder => AlertAction::Trigger(Severity::Info),
            HostNoticeStatus::Failed => AlertAction::Trigger(Severity::Critical),
            HostNoticeStatus::Completed => AlertAction::Resolve,
        },
        PushContent::Test { .. } => AlertAction::Trigger(Severity::Info),
    }
}

/// The key of the alert: the same from the announcement to the end.
fn dedup_key(push: &Push) -> String {
    match &push.content {
        PushContent::Event(notice) => notice.event.clone(),
        PushContent::Host(HostPush { notice, cluster, .. }) => {
            format!("host/{cluster}/{}/{}", notice.host, notice.since)
        }
        PushContent::Test { .. } => format!("test/{}", push.id),
    }
}

/// Members of an alert.
struct Alert {
    source: String,
    class: String,
    group: String,
    details: Value,
}

impl Alert {
    fn of(push: &Push) -> Self {
        match &push.content {
            PushContent::Event(notice) => Self::of_event(notice),
            PushContent::Host(HostPush { notice, cluster, rollout, .. }) => Self {
                source: notice.host.clone(),
                class: notice.operation.clone(),
                group: cluster.clone(),
                details: json!({ "host": notice.host, "work": notice.work, "since": date(notice.since), "rollout": rollout }),
            },
            PushContent::Test { webhook, .. } => Self {
                source: "forewarn".to_owned(),
                class: "test".to_owned(),
                group: webhook.clone(),
                details: json!({}),
            },
        }
    }

    fn of_event(notice: &Notice) -> Self {
        let Notice { event, status, kind, not_before, tenant, resources, .. } = notice;
        Self {
            source: resources.first().unwrap_or(tenant).clone(),
            class: kind.clone(),
            group: tenant.clone(),
            details: json!({
                "event": event,
                "status": status.as_str(),
                "tenant": tenant,
                "machines": resources.iter().take(MACHINES_MAX).collect::<Vec<_>>(),
                "machine_count": resources.len(),
                "not_before": not_before.map(date),
            }),
        }
    }
}

/// Details with the lines of the note, which say what to do.
fn with_lines(mut details: Value, note: &ChatNote) -> Value {
    details["text"] = note.lines.iter().map(ToString::to_string).collect();
    details
}
