//! The status of the agent as JSON: the output of `forewarn-agent status --json` and the response of `/status`.

use forewarn_agent_core::{
    Consent, EventCase, EventOutcome, HookState, PeerStatus, Phase, Settings, Task, Treatment, Watcher,
};
use forewarn_types::{Moment, Steady};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::obstacles::NotApproved;

/// The status of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The version of the agent.
    pub(crate) version: String,
    /// The name of this machine, once known.
    pub(crate) name: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) ready: bool,
    pub(crate) drained: bool,
    pub(crate) endpoint: EndpointView,
    /// Pending events, in the order of their first observation.
    pub(crate) events: Vec<EventView>,
    /// Hooks that are still to be undone.
    pub(crate) pending_undo: Vec<String>,
    /// Time of this status, by the wall clock.
    pub(crate) at: Moment,
}

/// The state of the endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointView {
    pub(crate) url: Option<String>,
    /// The source of its address.
    pub(crate) found: Option<String>,
    /// Its `Server` header.
    pub(crate) server: Option<String>,
    pub(crate) edition: Option<String>,
    /// True once a document was read.
    pub(crate) enabled: bool,
    /// True if the last poll succeeded.
    pub(crate) reachable: bool,
    /// Time of the last response, by the wall clock.
    pub(crate) last_response: Option<Moment>,
    /// Start of the current failure, and its reason.
    pub(crate) failing_since: Option<Moment>,
    pub(crate) error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventView {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) resources: Vec<String>,
    pub(crate) mine: bool,
    pub(crate) not_before: Option<Moment>,
    pub(crate) seconds_left: Option<u64>,
    pub(crate) treatment: Treatment,
    /// Progress of this machine: `waiting`, `preparing`, `ready`, `failed`, `idle`, `ignored`.
    pub(crate) stage: Option<String>,
    pub(crate) consent: Consent,
    /// The reason why this machine is ready, or has failed, and does not approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_approved: Option<NotApproved>,
    pub(crate) outcome: Option<EventOutcome>,
    pub(crate) hooks: Vec<HookView>,
}

/// The state of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookView {
    pub(crate) name: String,
    pub(crate) phase: Phase,
    pub(crate) attempts: u32,
    /// One of `begun`, `done`, `failed`, `skipped`.
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// A hook that runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetriedHook {
    pub(crate) event: String,
    pub(crate) phase: Phase,
    pub(crate) hook: String,
}

impl From<Task> for RetriedHook {
    fn from(Task { event, phase, hook }: Task) -> Self {
        Self { event: event.to_string(), phase, hook }
    }
}

impl Status {
    /// The status of an agent that has not started.
    pub(crate) fn new(endpoint: EndpointView) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: None,
            dry_run: false,
            ready: false,
            drained: false,
            endpoint,
            events: Vec::new(),
            pending_undo: Vec::new(),
            at: Moment(clock::wall()),
        }
    }
}

/// The pending events of a watcher, with their states in the peer report. There may be thousands, so each is visited
/// once.
pub(crate) fn events(watcher: &Watcher, peer_status: &PeerStatus, now: Steady) -> Vec<EventView> {
    let stage_of = |id: &str| peer_status.events.get(id).and_then(|event| text(&event.stage));
    let view = |(case, deadline): (&EventCase, Option<Steady>)| {
        let id = case.observed.id.to_string();
        EventView {
            kind: case.observed.kind.clone(),
            status: case.observed.status.as_str().to_owned(),
            resources: case.observed.resources.clone(),
            mine: case.observed.names(&watcher.settings().me),
            not_before: case.observed.not_before,
            seconds_left: deadline.map(|deadline| deadline.since(now).as_secs()),
            treatment: case.treatment,
            stage: match case.treatment {
                Treatment::Ignore => Some("ignored".to_owned()),
                Treatment::ApproveAtOnce | Treatment::Prepare => stage_of(&id),
            },
            consent: case.consent,
            outcome: case.outcome,
            not_approved: watcher
                .obstacle(now, case)
                .map(|obstacle| NotApproved::new(&obstacle, case.observed.id)),
            hooks: hooks(case, watcher.settings()),
            id,
        }
    };
    watcher.cases().map(view).collect()
}

/// The hooks in the order in which they run; those that left the settings come last.
fn hooks(case: &EventCase, settings: &Settings) -> Vec<HookView> {
    let order = |name: &str| {
        let hook = settings.hooks.iter().find(|hook| hook.name == name);
        hook.map_or(u32::MAX, |hook| hook.order)
    };
    let mut views = Vec::new();
    for (phase, runs) in &case.runs {
        let mut runs: Vec<_> = runs.iter().collect();
        runs.sort_by_key(|(name, _)| order(name));
        for (name, progress) in runs {
            let (state, reason) = match &progress.state {
                HookState::Begun => ("begun", None),
                HookState::Done => ("done", None),
                HookState::Failed(reason) => ("failed", Some(reason.clone())),
                HookState::Skipped => ("skipped", None),
            };
            views.push(HookView {
                name: name.clone(),
                phase: *phase,
                attempts: progress.attempts,
                state: state.to_owned(),
                reason,
            });
        }
    }
    views
}

/// The JSON spelling of a value.
fn text(peer_status: &impl Serialize) -> Option<String> {
    serde_json::to_value(peer_status).ok()?.as_str().map(str::to_owned)
}
