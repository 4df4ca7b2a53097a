//! Explanations: why there is an event, what it waits for, what becomes of it; what has happened to a machine, and who asked for it;
//! what instances of a scale set are told of their deletion.
//!
//! Pure: made of a cluster as it is, of what the trail tells, and of when machines last asked. Nothing is found out here; who
//! explains gathers a [`Chronicle`] first.
//!
//! ```text
//!   trail ──▶ Chronicle ──┐
//!   cluster, polls ───────┼──▶ explain_event, explain_machine, explain_scale_set ──▶ views, in words
//!   Onlooker (who asks) ──┘
//! ```

mod chronicle;
mod event;
mod machine;
mod notification;
mod obstacles;
mod preview;
mod scale_set;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use forewarn_control::{AuditEntry, EventView, FailureView, MachineView};
use forewarn_imds::Edition;
use forewarn_lifecycle::{Cluster, MachineId, MaintenanceId, Now, TenantId};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use chronicle::{Chronicle, Wanted};
pub use event::explain_event;
pub use machine::{Explained, explain_machine};
pub use notification::{Azure, RefusedView, Resource, UnknownMember};
pub use preview::{CourseView, NoPreview, PreviewView, StepView, TenantStepView, preview};
pub use scale_set::{ScaleSetExplanation, explain_scale_set};

/// The last time that a machine asked for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// When.
    pub at: Moment,
    /// In which edition.
    pub edition: Edition,
    /// The last entry of the trail when the document was published that it was shown.
    pub told: u64,
}

/// What is known when something is explained.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What the cluster is called.
    pub name: &'a str,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// When.
    pub now: Now,
    /// When a machine last asked.
    pub polls: &'a dyn Fn(MachineId) -> Option<Poll>,
    /// Why programs have to be ordered again.
    pub troubles: &'a BTreeMap<(MaintenanceId, MachineId), String>,
    /// What the trail tells.
    pub chronicle: &'a Chronicle,
    /// How clients of Azure know it.
    pub azure: Azure<'a>,
    /// To whom it is explained.
    pub onlooker: Onlooker<'a>,
}

/// To whom something is explained, and of what they may know.
#[derive(Clone, Copy)]
pub struct Onlooker<'a> {
    /// Whether they may know of an entry.
    pub knows: &'a dyn Fn(&AuditEntry) -> bool,
    /// Whether they may know of a tenant.
    pub sees: &'a dyn Fn(TenantId) -> bool,
    /// Whether there are tenants of which they may not know.
    pub is_limited: bool,
}

impl fmt::Debug for Scene<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Scene").field("name", &self.name).field("now", &self.now).finish_non_exhaustive()
    }
}

impl fmt::Debug for Onlooker<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Onlooker")
    }
}

/// Why there is an event, how it stands, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventExplanation {
    /// Its id.
    pub id: String,
    /// The cluster.
    pub cluster: String,
    /// Whose it is.
    pub tenant: String,
    /// When this was said.
    pub now: Moment,
    /// `Scheduled` or `Started`, as in a document; `Completed` or `Withdrawn`, when it is over.
    #[schemars(extend("enum" = ["Scheduled", "Started", "Completed", "Withdrawn"]))]
    pub status: String,
    /// How it stands, or how it ended, in a sentence.
    pub summary: String,
    /// Why there is such an event.
    pub why: String,
    /// Who asked for it; nobody, if nobody did, or if that is not kept any more.
    pub asked: Option<AskedView>,
    /// Since when it can be seen, if that is known.
    pub announced: Option<Moment>,
    /// The earliest start without approval.
    pub not_before: Option<Moment>,
    /// The event as it is shown elsewhere, unless it is over.
    pub event: Option<EventView>,
    /// When the machines of the tenant last asked. Empty, when it is over.
    pub polls: Vec<PollView>,
    /// Who approved, and when.
    pub approvals: Vec<ApprovalView>,
    /// What keeps it from starting, or from ending.
    pub blockers: Vec<String>,
    /// What happens next, and when.
    pub next: Vec<String>,
    /// What is done to each machine, and what it keeps and loses.
    pub machines: Vec<FateView>,
    /// Requests of clients of Azure about its machine or its scale set that were refused since the server started: of each the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedView>,
    /// The machines for which it has failed, and why: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
    /// What is unusual, and what to do about it.
    pub hints: Vec<String>,
    /// What has happened, oldest first.
    pub history: Vec<Step>,
}

/// What a machine is, what has happened to it, and what is coming.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineExplanation {
    /// Its name, as `tenant/name`.
    pub name: String,
    /// The cluster.
    pub cluster: String,
    /// When this was said.
    pub now: Moment,
    /// How it is, and what was last done to it, in sentences.
    pub summary: String,
    /// The machine as it is shown elsewhere, unless it is gone.
    pub machine: Option<MachineView>,
    /// Whether its tenant is told of events.
    pub enrolled: bool,
    /// When it last asked for its events; nothing, if it has not since the server started.
    pub asked_last: Option<PollView>,
    /// What is announced, under way, or planned for its host.
    pub coming: Vec<ComingView>,
    /// Requests of clients of Azure about it or its scale set that were refused since the server started: of each the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedView>,
    /// What is unusual, and what to do about it.
    pub hints: Vec<String>,
    /// What has happened, newest first.
    pub history: Vec<Step>,
    /// Where to go on with the history: `before` of the request for what is older. Not there when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The number up to which the trail is not kept any more.
    pub swept: u64,
}

/// A command that somebody sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedView {
    /// The number of its entry in the trail.
    pub number: u64,
    /// When.
    pub at: Moment,
    /// Who: `token NAME`, `socket`, `anyone`.
    pub by: String,
    /// For what, in words.
    pub text: String,
}

/// When a machine last asked for its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollView {
    /// Its name.
    pub machine: String,
    /// When; nothing, if it has not since the server started.
    pub last: Option<Moment>,
    /// With which api-version.
    pub edition: Option<String>,
    /// Whether it was shown the event, if this is about one.
    pub shown: bool,
}

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Whose.
    pub tenant: String,
    /// Who gave it.
    pub by: String,
    /// When.
    pub at: Moment,
}

/// What is done to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FateView {
    /// Its name.
    pub machine: String,
    /// What, and what it keeps and loses.
    pub text: String,
}

/// Something that is coming.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComingView {
    /// The event, if it is announced.
    pub event: Option<String>,
    /// In a sentence.
    pub text: String,
    /// The earliest start without approval.
    pub not_before: Option<Moment>,
    /// The reason why the driver program is asked again, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Something that has happened: an entry of the trail, as far as whoever asks may know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The number of the entry.
    pub number: u64,
    /// When.
    pub at: Moment,
    /// What kind of thing, as in the trail.
    pub kind: String,
    /// By whom, as in the trail.
    pub by: String,
    /// In words.
    pub text: String,
    /// The events concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The reason of a failure, as the driver program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The command that made this step happen, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedView>,
    /// The command that the work came of, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<AskedView>,
}

impl Scene<'_> {
    fn step(&self, entry: &AuditEntry) -> Step {
        let asked = self.chronicle.asked(entry);
        let origin = self.chronicle.origin(entry);
        let origin = origin.filter(|origin| asked.is_none_or(|asked| asked.number != origin.number));
        let knows = (self.onlooker.knows)(entry);
        let (by, text, events) = if knows {
            (entry.by.clone(), entry.text.clone(), entry.events.clone())
        } else {
            ("somebody".to_owned(), format!("{}: this concerns others too", entry.kind), Vec::new())
        };
        Step {
            number: entry.number,
            at: entry.at,
            kind: entry.kind.clone(),
            by,
            text,
            events,
            reason: entry.reason.clone().filter(|_| knows),
            asked: asked.map(|command| self.asked_view(command)),
            origin: origin.map(|command| self.asked_view(command)),
        }
    }

    /// A command, as far as whoever asks may know of it.
    fn asked_view(&self, command: &AuditEntry) -> AskedView {
        let (number, at) = (command.number, command.at);
        if (self.onlooker.knows)(command) {
            let text = command.text.strip_prefix("asked for: ").unwrap_or(&command.text).to_owned();
            return AskedView { number, at, by: command.by.clone(), text };
        }
        AskedView { number, at, by: "an operator".to_owned(), text: "what concerns others too".to_owned() }
    }

    fn poll_view(&self, machine: MachineId, told_from: Option<u64>) -> Option<PollView> {
        let poll = (self.polls)(machine);
        Some(PollView {
            machine: self.cluster.machine(machine)?.name.to_string(),
            last: poll.map(|poll| poll.at),
            edition: poll.map(|poll| poll.edition.as_str().to_owned()),
            shown: poll.zip(told_from).is_some_and(|(poll, from)| poll.told >= from),
        })
    }
}
