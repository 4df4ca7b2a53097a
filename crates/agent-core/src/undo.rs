//! Undoing: only what was done, only when nothing is pending, one after the other, the last first.

use forewarn_types::{EventId, Steady};

use crate::deed::{Deed, Ending, Note, Run, Task, What};
use crate::memory::{Owed, Undoing};
use crate::seen::Seen;
use crate::settings::Phase;
use crate::watcher::{RETRY_PAUSE, Watcher};

impl Watcher {
    /// Whether something is being undone right now.
    pub(crate) fn undo_runs(&self) -> bool {
        self.memory.owed.values().any(|owed| owed.undoing.runs)
    }

    /// Hooks of the phase [`Phase::Undo`] and hooks that undo what they did are owed from the moment they may have done anything.
    pub(crate) fn owe(&mut self, hook: &str, seen: &Seen) {
        let owed = self.memory.owed.entry(hook.to_owned()).or_insert_with(|| Owed {
            since: seen.id,
            seen: seen.clone(),
            gone: None,
            memory: None,
            attempts: 0,
            undoing: Undoing::default(),
        });
        owed.seen = seen.clone();
        owed.gone = None;
        owed.attempts = 0;
        owed.undoing = Undoing::default();
    }

    /// The next thing to undo, if nothing is pending.
    pub(crate) fn undo(&mut self, now: Steady, deeds: &mut Vec<Deed>) {
        if self.undo_runs() || self.memory.owed.is_empty() || !self.is_quiet() {
            return;
        }
        let order = |name: &String| (self.settings.hook(name).map_or(0, |hook| hook.order), name.clone());
        let mut names: Vec<_> = self.memory.owed.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(order(name)));
        for name in names {
            let Some(owed) = self.memory.owed.get_mut(&name) else { continue };
            if owed.undoing.given_up {
                continue;
            }
            let Some(limit) =
                self.settings.hooks.iter().find(|hook| hook.name == name).map(|hook| hook.limit)
            else {
                // Its hook is no longer in the settings: nobody knows how to undo it.
                let why = "there is no such hook any more".to_owned();
                let what = What::UndoFailed { hook: name.clone(), why };
                deeds.push(Deed::Note(Note { seen: owed.seen.clone(), what }));
                self.memory.owed.remove(&name);
                self.told_undoing &= !self.memory.owed.is_empty();
                continue;
            };
            if owed.undoing.again_at.is_some_and(|at| now < at) {
                return;
            }
            if !self.told_undoing {
                self.told_undoing = true;
                deeds.push(Deed::Note(Note { seen: owed.seen.clone(), what: What::Undoing }));
            }
            owed.attempts += 1;
            owed.undoing.runs = true;
            owed.undoing.again_at = None;
            owed.undoing.attempts += 1;
            let seen = owed.seen.clone();
            deeds.push(Deed::Run(Run {
                task: Task { event: seen.id, phase: Phase::Undo, hook: name },
                attempt: owed.attempts,
                until: now.plus(limit),
                seen,
                deadline: None,
                outcome: owed.gone,
                owed: Some(owed.since),
                memory: owed.memory.clone(),
            }));
            return;
        }
    }

    /// Something was undone, or not.
    pub(crate) fn undone(&mut self, now: Steady, hook: &str, ending: &Ending, deeds: &mut Vec<Deed>) {
        let retries = self.settings.hook(hook).map_or(0, |hook| hook.retries);
        let Some(owed) = self.memory.owed.get_mut(hook) else { return };
        let was_stopped = owed.undoing.stopped;
        (owed.undoing.runs, owed.undoing.stopped) = (false, false);
        let seen = owed.seen.clone();
        match &ending.result {
            Ok(()) => {
                self.memory.owed.remove(hook);
                if self.memory.owed.is_empty() {
                    self.told_undoing = false;
                    deeds.push(Deed::Note(Note { seen, what: What::Undone }));
                }
            }
            // It is still owed, and nobody has failed.
            Err(_) if was_stopped => owed.undoing = Undoing::default(),
            Err(_) if owed.undoing.attempts <= retries => {
                owed.undoing.again_at = Some(now.plus(RETRY_PAUSE));
            }
            Err(why) => {
                owed.undoing.given_up = true;
                let what = What::UndoFailed { hook: hook.to_owned(), why: why.clone() };
                deeds.push(Deed::Note(Note { seen, what }));
            }
        }
    }

    /// Ends what is being undone. It stays owed.
    pub(crate) fn stop_undo(&mut self, deeds: &mut Vec<Deed>) {
        for (hook, owed) in &mut self.memory.owed {
            if owed.undoing.runs && !std::mem::replace(&mut owed.undoing.stopped, true) {
                deeds.push(Deed::Stop(Task { event: owed.seen.id, phase: Phase::Undo, hook: hook.clone() }));
            }
        }
    }

    /// The events for which something is still to be undone, and will be.
    pub(crate) fn owed_events(&self) -> impl Iterator<Item = EventId> {
        self.memory.owed.values().filter(|owed| !owed.undoing.given_up).map(|owed| owed.seen.id)
    }

    /// When undoing something is tried again.
    pub(crate) fn next_undo(&self) -> Option<Steady> {
        self.memory.owed.values().filter_map(|owed| owed.undoing.again_at).min()
    }

    /// What could not be undone is tried again after the next event.
    pub(crate) fn try_again(&mut self) {
        for owed in self.memory.owed.values_mut() {
            let Undoing { runs, stopped, .. } = owed.undoing;
            owed.undoing = Undoing { runs, stopped, ..Undoing::default() };
        }
    }
}
