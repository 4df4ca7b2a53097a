//! Explanations of events (cause, obstacles, next step), of machines (history and requests behind it), and of
//! scale sets (notice of deletion).
//!
//! Pure: an explanation is made of the state of a cluster, audit entries, and the last polls of machines. The caller
//! collects the entries into a [`History`] first.
//!
//! ```text
//! audit log ──▶ History ──┐
//! cluster, polls ─────────┼──▶ explain_event, explain_machine, explain_scale_set ──▶ views, in words
//! Viewer (the caller) ────┘
//! ```

mod approval_trial;
mod event;
mod fencing;
mod history;
mod host_mode;
mod host_step;
mod impact;
mod machine;
mod notification;
mod obstacles;
mod preview;
mod scale_set;
mod windows;

use std::collections::BTreeMap;
use std::fmt;

use forewarn_control::{AuditEntry, EventView, FailureView, MachineView};
use forewarn_imds::Edition;
use forewarn_lifecycle::{Cluster, MachineId, MaintenanceId, Now, Target, TenantId};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use event::explain_event;
pub use history::{AuditHistory, HistoryLookup};
pub use machine::{ExplainedMachine, explain_machine};
pub use notification::{AzureContext, RefusedView, Resource, UnknownMember};
pub use preview::{CourseView, HostStepView, PreviewError, PreviewView, StepView, TenantStepView, preview};
pub use scale_set::{ScaleSetExplanation, explain_scale_set};

/// The last poll of a machine for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Time of the poll.
    pub at: Moment,
    /// Edition of the document.
    pub edition: Edition,
    /// Number of the last audit entry when the document of the response was published.
    pub last_entry: u64,
}

/// Everything that an explanation is made of.
#[derive(Clone, Copy)]
pub struct ExplanationContext<'a> {
    /// Name of the cluster.
    pub name: &'a str,
    /// State of the cluster.
    pub cluster: &'a Cluster,
    /// Time of the explanation.
    pub now: Now,
    /// The last poll of a machine.
    pub polls: &'a dyn Fn(MachineId) -> Option<Poll>,
    /// Errors of driver programs whose actions are retried.
    pub driver_errors: &'a BTreeMap<(MaintenanceId, Target), String>,
    /// Audit entries about the object.
    pub history: &'a AuditHistory,
    /// Resource groups and refused requests of Azure clients.
    pub azure: AzureContext<'a>,
    /// The caller that reads the explanation.
    pub viewer: Viewer<'a>,
}

/// The caller that reads an explanation, and its permissions.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    /// Returns true if the caller may read an entry.
    pub may_read: &'a dyn Fn(&AuditEntry) -> bool,
    /// Returns true if the caller may see a tenant.
    pub may_see: &'a dyn Fn(TenantId) -> bool,
    /// True if there are tenants that the caller may not see.
    pub is_limited: bool,
}

impl fmt::Debug for ExplanationContext<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExplanationContext")
            .field("name", &self.name)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Viewer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Viewer")
    }
}

/// Explanation of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventExplanation {
    /// Id of the event.
    pub id: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Tenant of the event.
    pub tenant: String,
    /// Time of this explanation.
    pub now: Moment,
    /// `Scheduled` or `Started`, as in a document; `Completed` or `Withdrawn` after its end.
    #[schemars(extend("enum" = ["Scheduled", "Started", "Completed", "Withdrawn"]))]
    pub status: String,
    /// State or result of the event, as a sentence.
    pub summary: String,
    /// Cause of the event.
    pub why: String,
    /// The request that caused it. Null if no request did, or its audit entry is no longer stored.
    pub request: Option<RequestView>,
    /// Time of the announcement, if known.
    pub announced: Option<Moment>,
    /// The earliest start without approval.
    pub not_before: Option<Moment>,
    /// View of the event; null after its end.
    pub event: Option<EventView>,
    /// Last polls of the machines of the tenant. Empty after the end of the event.
    pub polls: Vec<PollView>,
    /// Approvals.
    pub approvals: Vec<ApprovalView>,
    /// Obstacles to its start, or to its completion.
    pub blockers: Vec<String>,
    /// Next steps, with times.
    pub next: Vec<String>,
    /// Impact on each machine: what it keeps, and what it loses.
    pub machines: Vec<ImpactView>,
    /// Refused requests of Azure clients about its machine or its scale set since the server started: the newest of
    /// each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedView>,
    /// Machines for which it failed, with the reason: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
    /// Unusual facts, with advice.
    pub hints: Vec<String>,
    /// Audit entries, oldest first.
    pub history: Vec<HistoryEntry>,
}

/// Explanation of a machine: its state, history and upcoming work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineExplanation {
    /// Name of the machine, as `tenant/name`.
    pub name: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Time of this explanation.
    pub now: Moment,
    /// State of the machine and the last work on it, in sentences.
    pub summary: String,
    /// View of the machine; null if it was removed.
    pub machine: Option<MachineView>,
    /// True if its tenant is enrolled: its machines get notice of events.
    pub enrolled: bool,
    /// True if the setting `enrolment` enrols its tenant, with or without polls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enrolled_by_setting: bool,
    /// Its last poll for events; null if it has not polled since the server started.
    pub last_poll: Option<PollView>,
    /// Work that is announced, under way, or planned for its host.
    pub coming: Vec<UpcomingView>,
    /// Refused requests of Azure clients about it or its scale set since the server started: the newest of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedView>,
    /// Unusual facts, with advice.
    pub hints: Vec<String>,
    /// Audit entries, newest first.
    pub history: Vec<HistoryEntry>,
    /// Cursor of older entries: `before` of the next request. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// True if entries were removed by retention: the history may have been longer.
    pub swept: bool,
}

/// A request that caused an event or an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestView {
    /// Number of its audit entry, within the cluster.
    pub number: u64,
    /// Time of the request.
    pub at: Moment,
    /// The caller: `token NAME`, `socket`, `anyone`.
    pub by: String,
    /// The request, in words.
    pub text: String,
}

/// The last poll of a machine for its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollView {
    /// Name of the machine.
    pub machine: String,
    /// Time of the poll; null if it has not polled since the server started.
    pub last: Option<Moment>,
    /// Api-version of the poll.
    pub edition: Option<String>,
    /// True if the response had the event that is explained.
    pub shown: bool,
}

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Tenant that approved.
    pub tenant: String,
    /// The approver.
    pub by: String,
    /// Time of the approval.
    pub at: Moment,
}

/// Impact on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactView {
    /// Name of the machine.
    pub machine: String,
    /// The impact: what the machine keeps, and what it loses.
    pub text: String,
}

/// Upcoming work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpcomingView {
    /// Id of the event, if it is announced.
    pub event: Option<String>,
    /// Description, as a sentence.
    pub text: String,
    /// The earliest start without approval.
    pub not_before: Option<Moment>,
    /// Error of the driver program, while its action is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An audit entry, as far as the caller may read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// Number of the entry.
    pub number: u64,
    /// Time of the entry.
    pub at: Moment,
    /// Kind of the entry, as in the audit log.
    pub kind: String,
    /// The caller, as in the audit log.
    pub by: String,
    /// The entry as a sentence.
    pub text: String,
    /// Affected events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Reason of a failure, from the driver program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The request that directly caused this entry, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestView>,
    /// The request behind the work, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RequestView>,
}

impl ExplanationContext<'_> {
    fn step(&self, entry: &AuditEntry) -> HistoryEntry {
        let request = self.history.request(entry);
        let origin = self.history.origin(entry);
        let origin = origin.filter(|origin| request.is_none_or(|request| request.number != origin.number));
        let knows = (self.viewer.may_read)(entry);
        let (by, text, events) = if knows {
            (entry.by.clone(), entry.text.clone(), entry.events.clone())
        } else {
            ("another caller".to_owned(), format!("{}: also affects other tenants", entry.kind), Vec::new())
        };
        HistoryEntry {
            number: entry.number,
            at: entry.at,
            kind: entry.kind.clone(),
            by,
            text,
            events,
            reason: entry.reason.clone().filter(|_| knows),
            request: request.map(|command| self.request_view(command)),
            origin: origin.map(|command| self.request_view(command)),
        }
    }

    /// A request, as far as the caller may read it.
    fn request_view(&self, command: &AuditEntry) -> RequestView {
        let (number, at) = (command.number, command.at);
        if (self.viewer.may_read)(command) {
            // Entries of an earlier version have the second prefix.
            let stripped = ["requested: ", "asked for: "].iter().find_map(|it| command.text.strip_prefix(it));
            let text = stripped.unwrap_or(&command.text).to_owned();
            return RequestView { number, at, by: command.by.clone(), text };
        }
        RequestView {
            number,
            at,
            by: "an operator".to_owned(),
            text: "a request that also affects other tenants".to_owned(),
        }
    }

    fn poll_view(&self, machine: MachineId, announced: Option<u64>) -> Option<PollView> {
        let poll = (self.polls)(machine);
        Some(PollView {
            machine: self.cluster.machine(machine)?.name.to_string(),
            last: poll.map(|poll| poll.at),
            edition: poll.map(|poll| poll.edition.as_str().to_owned()),
            shown: poll.zip(announced).is_some_and(|(poll, from)| poll.last_entry >= from),
        })
    }
}
