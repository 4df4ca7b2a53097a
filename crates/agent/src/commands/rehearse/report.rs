//! What a drill has shown: each hook with the time it took, and whether there was enough of it.

use std::time::Duration;

use anyhow::Result;
use forewarn_agent_core::Phase;
use forewarn_cli_support::table::Table;
use forewarn_cli_support::visible::json;
use forewarn_imds::ReadEvent;
use forewarn_types::show_duration;
use serde::Serialize;

use super::super::print;
use crate::run::Ended;

/// What a drill has shown.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    event: String,
    /// How long it was until it would have started.
    seconds_given: u64,
    /// How long this machine needed to be ready.
    seconds_to_ready: f64,
    /// Whether a rule says that nothing is done about such an event.
    ignored: bool,
    /// Whether a rule says that such an event is approved without any hook.
    approved_at_once: bool,
    /// Whether this machine would not have approved, because hooks have failed.
    held: bool,
    /// Whether somebody has cut it short.
    interrupted: bool,
    hooks: Vec<Row>,
    /// Hooks that have failed for good.
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Row {
    phase: Phase,
    hook: String,
    seconds: f64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Failure {
    phase: Phase,
    hook: String,
    why: String,
}

impl Report {
    pub(super) fn new(event: &ReadEvent, given: Duration) -> Self {
        Self { event: event.id.to_string(), seconds_given: given.as_secs(), ..Self::default() }
    }

    /// A hook has ended.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let Ended { task, ending, took } = ended;
        let why = ending.result.as_ref().err().cloned();
        let outcome = if why.is_none() { "done" } else { "failed" };
        let seconds = rounded(*took);
        self.hooks.push(Row { phase: task.phase, hook: task.hook.clone(), seconds, outcome, why });
    }

    /// A hook has failed, and is not tried again.
    pub(super) fn lost(&mut self, phase: Phase, hook: &str, why: &str) {
        self.failures.push(Failure { phase, hook: hook.to_owned(), why: why.to_owned() });
    }

    /// All that was to be done before the event could start has ended.
    pub(super) fn prepared(&mut self, took: Duration) {
        self.seconds_to_ready = rounded(took);
    }

    pub(super) fn ignored(&mut self) {
        self.ignored = true;
    }

    pub(super) fn approved_at_once(&mut self) {
        self.approved_at_once = true;
    }

    pub(super) fn held(&mut self) {
        self.held = true;
    }

    pub(super) fn interrupted(&mut self) {
        self.interrupted = true;
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub(super) fn failed(&self) -> usize {
        self.failures.len()
    }

    pub(super) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            return print(&json(&format!("{}\n", serde_json::to_string_pretty(self)?)));
        }
        let mut table = Table::new(&["phase", "hook", "seconds", "outcome", "why"]);
        for Row { phase, hook, seconds, outcome, why } in &self.hooks {
            table.row([
                phase.as_str().to_owned(),
                hook.clone(),
                format!("{seconds:.3}"),
                (*outcome).to_owned(),
                why.clone().unwrap_or_default(),
            ]);
        }
        print(&format!("{table}\n{}\n", self.summary()))
    }

    fn summary(&self) -> String {
        if self.ignored {
            return "A rule says that nothing is done about such an event.".to_owned();
        }
        if self.approved_at_once {
            return "A rule says that such an event is approved at once: no hook runs, and in a drill nothing is approved.".to_owned();
        }
        if self.interrupted {
            return "Interrupted. What was done is undone.".to_owned();
        }
        let given = show_duration(Duration::from_secs(self.seconds_given));
        let ready = format!("{:.3} s after the announcement, of {given}", self.seconds_to_ready);
        if self.held {
            return format!(
                "Not ready {ready}: hooks have failed, and with on_failure = \"hold\" this machine would not approve."
            );
        }
        if self.hooks.is_empty() && self.failures.is_empty() {
            return "There is no hook for such an event: this machine is always ready.".to_owned();
        }
        format!("Ready {ready}. Nothing was approved.")
    }
}

fn rounded(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}
