//! Undoing: one hook at a time in reverse order, only work that was done, and only while no event is pending.

use forewarn_types::{EventId, Steady};

use crate::effect::{Effect, EventLogEntry, EventLogKind, HookOutcome, Run, Task};
use crate::memory::{PendingUndo, UndoProgress};
use crate::observation::ObservedEvent;
use crate::settings::Phase;
use crate::watcher::{RETRY_PAUSE, Watcher};

impl Watcher {
    /// True while an undo runs.
    pub(crate) fn undo_runs(&self) -> bool {
        self.memory.pending_undo.values().any(|pending| pending.undoing.runs)
    }

    /// Records that a hook has to be undone. Called before the hook starts, because it may fail halfway.
    pub(crate) fn require_undo(&mut self, hook: &str, observed: &ObservedEvent) {
        let pending = self.memory.pending_undo.entry(hook.to_owned()).or_insert_with(|| PendingUndo {
            since: observed.id,
            observed: observed.clone(),
            outcome: None,
            memory: None,
            attempts: 0,
            undoing: UndoProgress::default(),
        });
        pending.observed = observed.clone();
        pending.outcome = None;
        pending.attempts = 0;
        pending.undoing = UndoProgress::default();
    }

    /// Starts the next undo, if no event is pending.
    pub(crate) fn undo(&mut self, now: Steady, effects: &mut Vec<Effect>) {
        if self.undo_runs() || self.memory.pending_undo.is_empty() || !self.is_quiet() {
            return;
        }
        let order = |name: &String| (self.settings.hook(name).map_or(0, |hook| hook.order), name.clone());
        let mut names: Vec<_> = self.memory.pending_undo.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(order(name)));
        for name in names {
            let Some(pending) = self.memory.pending_undo.get_mut(&name) else { continue };
            if pending.undoing.given_up {
                continue;
            }
            let Some(limit) =
                self.settings.hooks.iter().find(|hook| hook.name == name).map(|hook| hook.limit)
            else {
                // The hook is no longer in the settings, so there is no way to undo its work.
                let reason = "the hook is no longer in the settings".to_owned();
                let kind = EventLogKind::UndoFailed { hook: name.clone(), reason };
                effects.push(Effect::Log(EventLogEntry { observed: pending.observed.clone(), kind }));
                self.memory.pending_undo.remove(&name);
                self.logged_undoing &= !self.memory.pending_undo.is_empty();
                continue;
            };
            if pending.undoing.retry_at.is_some_and(|at| now < at) {
                return;
            }
            if !self.logged_undoing {
                self.logged_undoing = true;
                effects.push(Effect::Log(EventLogEntry {
                    observed: pending.observed.clone(),
                    kind: EventLogKind::Undoing,
                }));
            }
            pending.attempts += 1;
            pending.undoing.runs = true;
            pending.undoing.retry_at = None;
            pending.undoing.attempts += 1;
            let observed = pending.observed.clone();
            effects.push(Effect::Run(Run {
                task: Task { event: observed.id, phase: Phase::Undo, hook: name },
                attempt: pending.attempts,
                until: now.plus(limit),
                observed,
                deadline: None,
                outcome: pending.outcome,
                pending_undo: Some(pending.since),
                memory: pending.memory.clone(),
            }));
            return;
        }
    }

    /// Records the result of an undo.
    pub(crate) fn on_undo_result(
        &mut self,
        now: Steady,
        hook: &str,
        hook_outcome: &HookOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let retries = self.settings.hook(hook).map_or(0, |hook| hook.retries);
        let Some(pending) = self.memory.pending_undo.get_mut(hook) else { return };
        let was_stopped = pending.undoing.stopped;
        (pending.undoing.runs, pending.undoing.stopped) = (false, false);
        let observed = pending.observed.clone();
        match &hook_outcome.result {
            Ok(()) => {
                self.memory.pending_undo.remove(hook);
                if self.memory.pending_undo.is_empty() {
                    self.logged_undoing = false;
                    effects.push(Effect::Log(EventLogEntry { observed, kind: EventLogKind::Undone }));
                }
            }
            // Stopped on request: it stays pending, and this is not a failure.
            Err(_) if was_stopped => pending.undoing = UndoProgress::default(),
            Err(_) if pending.undoing.attempts <= retries => {
                pending.undoing.retry_at = Some(now.plus(RETRY_PAUSE));
            }
            Err(reason) => {
                pending.undoing.given_up = true;
                let kind = EventLogKind::UndoFailed { hook: hook.to_owned(), reason: reason.clone() };
                effects.push(Effect::Log(EventLogEntry { observed, kind }));
            }
        }
    }

    /// Stops the running undo. It stays pending.
    pub(crate) fn stop_undo(&mut self, effects: &mut Vec<Effect>) {
        for (hook, pending) in &mut self.memory.pending_undo {
            if pending.undoing.runs && !std::mem::replace(&mut pending.undoing.stopped, true) {
                effects.push(Effect::Stop(Task {
                    event: pending.observed.id,
                    phase: Phase::Undo,
                    hook: hook.clone(),
                }));
            }
        }
    }

    /// The events with pending undo work that has not been given up.
    pub(crate) fn owed_events(&self) -> impl Iterator<Item = EventId> {
        self.memory
            .pending_undo
            .values()
            .filter(|pending| !pending.undoing.given_up)
            .map(|pending| pending.observed.id)
    }

    /// Time of the next undo attempt.
    pub(crate) fn next_undo(&self) -> Option<Steady> {
        self.memory.pending_undo.values().filter_map(|pending| pending.undoing.retry_at).min()
    }

    /// Resets the attempt counters, so that failed undo work is tried again after this event.
    pub(crate) fn try_again(&mut self) {
        for pending in self.memory.pending_undo.values_mut() {
            let UndoProgress { runs, stopped, .. } = pending.undoing;
            pending.undoing = UndoProgress { runs, stopped, ..UndoProgress::default() };
        }
    }
}
