//! The report of a rehearsal: the time of each hook, and whether it was enough.

use std::time::Duration;

use anyhow::Result;
use forewarn_agent_core::{Approval, Phase};
use forewarn_cli_support::output::names_in;
use forewarn_cli_support::table::Table;
use forewarn_cli_support::visible::flat;
use forewarn_imds::ReadEvent;
use forewarn_types::show_duration;
use serde::Serialize;

use super::super::{OutputFormat, print, print_data};
use crate::run::CompletedHook;

/// The report of a rehearsal.
#[derive(Debug, Default, Serialize)]
pub(super) struct RehearsalReport {
    event: String,
    /// Notice of the simulated event.
    seconds_given: u64,
    /// Time until this machine was ready.
    seconds_to_ready: f64,
    /// The approval policy for such an event.
    policy: Approval,
    /// True if a rule ignores such an event.
    ignored: bool,
    /// True if a rule approves such an event without hooks.
    approved_at_once: bool,
    /// True if this machine would not have approved, because hooks have failed.
    held: bool,
    /// True if the rehearsal was interrupted.
    interrupted: bool,
    hooks: Vec<HookRow>,
    /// Hooks that have failed in every attempt.
    failures: Vec<FailedHook>,
}

#[derive(Debug, Serialize)]
struct HookRow {
    phase: Phase,
    hook: String,
    seconds: f64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct FailedHook {
    phase: Phase,
    hook: String,
    reason: String,
}

impl RehearsalReport {
    pub(super) fn new(event: &ReadEvent, notice: Duration, policy: Approval) -> Self {
        Self { event: event.id.to_string(), seconds_given: notice.as_secs(), policy, ..Self::default() }
    }

    /// Records the result of a hook.
    pub(super) fn on_hook_result(&mut self, completed: &CompletedHook) {
        let CompletedHook { task, hook_outcome, took } = completed;
        let reason = hook_outcome.result.as_ref().err().cloned();
        let outcome = if reason.is_none() { "done" } else { "failed" };
        let seconds = rounded(*took);
        self.hooks.push(HookRow { phase: task.phase, hook: task.hook.clone(), seconds, outcome, reason });
    }

    /// Records a hook that is not retried any more.
    pub(super) fn hook_failed(&mut self, phase: Phase, hook: &str, reason: &str) {
        self.failures.push(FailedHook { phase, hook: hook.to_owned(), reason: reason.to_owned() });
    }

    /// Records the end of the preparation.
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

    pub(super) fn print(&self, output: OutputFormat) -> Result<()> {
        let width = match output {
            OutputFormat::Data(format) => {
                return print_data(format, self, |report| names_in(&report["hooks"], "hook"));
            }
            OutputFormat::Text(width) => width,
        };
        let mut table = Table::new(width, &["phase", "hook", "seconds", "outcome", "reason"]);
        for HookRow { phase, hook, seconds, outcome, reason } in &self.hooks {
            table.row([
                phase.as_str().to_owned(),
                hook.clone(),
                format!("{seconds:.3}"),
                (*outcome).to_owned(),
                reason.as_deref().map(flat).unwrap_or_default(),
            ]);
        }
        print(&format!("{table}\n{}\n", self.summary()))
    }

    fn summary(&self) -> String {
        if self.ignored {
            return "A rule ignores such an event.".to_owned();
        }
        if self.approved_at_once {
            return "A rule approves such an event at once: no hook runs. A rehearsal approves nothing."
                .to_owned();
        }
        if self.interrupted {
            return "Interrupted. All hooks were undone.".to_owned();
        }
        let notice = show_duration(Duration::from_secs(self.seconds_given));
        let ready = format!("{:.3} s after the announcement, of {notice}", self.seconds_to_ready);
        if self.held {
            return format!(
                "Not ready {ready}: hooks failed, and with on_failure = \"hold\" this machine would not approve."
            );
        }
        if self.hooks.is_empty() && self.failures.is_empty() {
            return format!("No hook applies to such an event: {}.", without_hooks(self.policy));
        }
        format!("Ready {ready}. Nothing was approved.")
    }
}

/// The consequence of an event to which no hook applies.
const fn without_hooks(policy: Approval) -> &'static str {
    match policy {
        Approval::Alone => "an event that names only this machine is approved at once (policy = \"alone\")",
        Approval::WhenDone => "it is approved at once (policy = \"when-done\")",
        Approval::Never => "this machine is ready at once, and approves nothing (policy = \"never\")",
        Approval::Leader => {
            "this machine is ready at once; the event is approved when all named machines are (policy = \"leader\")"
        }
    }
}

fn rounded(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}
