//! The status of the agent as JSON: the output of `forewarn-agent status` and the answer of `/status`.

use forewarn_agent_core::{Case, Consent, Gone, PeerWord, Phase, State, Treatment, Watcher};
use forewarn_types::{Moment, Steady};
use serde::{Deserialize, Serialize};

use crate::clock;

/// How an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Of the agent.
    pub(crate) version: String,
    /// Of this machine, once it is known.
    pub(crate) name: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) ready: bool,
    pub(crate) drained: bool,
    pub(crate) endpoint: EndpointView,
    /// In the order in which they were seen first.
    pub(crate) events: Vec<EventView>,
    /// What is still to be undone, by the names of hooks.
    pub(crate) owed: Vec<String>,
    /// When that was so, by the clock of this machine.
    pub(crate) at: Moment,
}

/// The state of the endpoint, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointView {
    pub(crate) url: Option<String>,
    /// How it was found.
    pub(crate) found: Option<String>,
    /// What it calls itself.
    pub(crate) server: Option<String>,
    pub(crate) edition: Option<String>,
    /// Whether Scheduled Events are enabled: a document was read.
    pub(crate) enabled: bool,
    /// Whether the last question was answered.
    pub(crate) reachable: bool,
    /// When it answered last, by the clock of this machine.
    pub(crate) answered: Option<Moment>,
    /// Since when it does not answer, and why.
    pub(crate) failing_since: Option<Moment>,
    pub(crate) error: Option<String>,
}

/// How an event stands.
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
    /// How far this machine is: `waiting`, `preparing`, `ready`, `failed`, `idle`.
    pub(crate) stage: Option<String>,
    pub(crate) consent: Consent,
    pub(crate) gone: Option<Gone>,
    pub(crate) hooks: Vec<HookView>,
}

/// How a hook stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookView {
    pub(crate) name: String,
    pub(crate) phase: Phase,
    pub(crate) attempts: u32,
    /// `begun`, `done`, `failed`, `skipped`.
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl Status {
    /// How an agent is that has not begun.
    pub(crate) fn new(endpoint: EndpointView) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: None,
            dry_run: false,
            ready: false,
            drained: false,
            endpoint,
            events: Vec::new(),
            owed: Vec::new(),
            at: Moment(clock::wall()),
        }
    }
}

/// The events that a watcher has in hand, of which it says that word. Each is looked at once: there may be thousands.
pub(crate) fn events(watcher: &Watcher, word: &PeerWord, now: Steady) -> Vec<EventView> {
    let stage_of = |id: &str| word.events.get(id).and_then(|standing| text(&standing.stage));
    let view = |(case, deadline): (&Case, Option<Steady>)| {
        let id = case.seen.id.to_string();
        EventView {
            kind: case.seen.kind.clone(),
            status: case.seen.status.as_str().to_owned(),
            resources: case.seen.resources.clone(),
            mine: case.seen.names(&watcher.settings().me),
            not_before: case.seen.not_before,
            seconds_left: deadline.map(|deadline| deadline.since(now).as_secs()),
            treatment: case.treatment,
            stage: stage_of(&id),
            consent: case.consent,
            gone: case.gone,
            hooks: hooks(case),
            id,
        }
    };
    watcher.cases().map(view).collect()
}

fn hooks(case: &Case) -> Vec<HookView> {
    let mut views = Vec::new();
    for (phase, runs) in &case.runs {
        for (name, progress) in runs {
            let (state, why) = match &progress.state {
                State::Begun => ("begun", None),
                State::Done => ("done", None),
                State::Failed(why) => ("failed", Some(why.clone())),
                State::Skipped => ("skipped", None),
            };
            views.push(HookView {
                name: name.clone(),
                phase: *phase,
                attempts: progress.attempts,
                state: state.to_owned(),
                why,
            });
        }
    }
    views
}

/// What a word is called in JSON.
fn text(word: &impl Serialize) -> Option<String> {
    serde_json::to_value(word).ok()?.as_str().map(str::to_owned)
}
