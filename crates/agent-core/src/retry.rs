//! Retries that a person requests, after the cause of a failure was removed.

use forewarn_types::{EventId, Steady};

use crate::effect::{Effect, Task};
use crate::event_case::{EventCase, HookState};
use crate::memory::UndoProgress;
use crate::observation::Status;
use crate::settings::Phase;
use crate::watcher::Watcher;

impl Watcher {
    /// Runs failed hooks again, each once: those of one event, or of all events. Returns these hooks.
    pub fn retry(&mut self, now: Steady, event: Option<EventId>) -> (Vec<Task>, Vec<Effect>) {
        let is_meant = |id: EventId| event.is_none_or(|event| event == id);
        let mut tasks = Vec::new();
        for case in self.memory.cases.iter_mut().filter(|case| is_meant(case.observed.id)) {
            let failed = reset_failed(case);
            case.live.logged_ready &= failed.is_empty();
            tasks.extend(failed);
        }
        for (hook, pending) in &mut self.memory.pending_undo {
            if pending.undoing.given_up && is_meant(pending.observed.id) {
                pending.undoing = UndoProgress::default();
                tasks.push(Task { event: pending.observed.id, phase: Phase::Undo, hook: hook.clone() });
            }
        }
        let mut effects = Vec::new();
        self.advance(now, &mut effects);
        (tasks, effects)
    }
}

/// Resets the failed hooks of the current phase, so that they run again.
fn reset_failed(case: &mut EventCase) -> Vec<Task> {
    let phases: &[Phase] = match (case.outcome, case.observed.status) {
        (Some(_), _) => &[],
        (None, Status::Scheduled) => &[Phase::Scheduled],
        (None, Status::Started) if case.late => &[Phase::Scheduled, Phase::Started],
        (None, Status::Started) => &[Phase::Started],
    };
    let event = case.observed.id;
    let mut tasks = Vec::new();
    for phase in phases {
        for (hook, progress) in case.runs.get_mut(phase).into_iter().flatten() {
            if matches!(progress.state, HookState::Failed(_)) {
                progress.state = HookState::Begun;
                tasks.push(Task { event, phase: *phase, hook: hook.clone() });
            }
        }
    }
    tasks
}
