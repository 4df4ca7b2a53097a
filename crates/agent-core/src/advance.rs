//! Progress of cases: performs every step that is due.

use forewarn_types::Steady;

use crate::effect::{Effect, EventLogEntry, EventLogKind, Run, Task};
use crate::event_case::{EventCase, EventOutcome, HookProgress, HookState, PhaseState};
use crate::observation::Status;
use crate::peers::Turn;
use crate::settings::{Failure, Hook, Phase, Treatment};
use crate::watcher::Watcher;

impl Watcher {
    /// Adds the effects that are due now. An effect is never added twice.
    pub(crate) fn advance(&mut self, now: Steady, effects: &mut Vec<Effect>) {
        if !self.has_document {
            return;
        }
        for index in 0..self.memory.cases.len() {
            if !self.memory.cases[index].live.confirmed {
                continue;
            }
            let case = &self.memory.cases[index];
            match (case.outcome, case.observed.status) {
                (Some(outcome), _) => self.finish(now, index, outcome, effects),
                (None, Status::Started) => self.run_started(now, index, effects),
                (None, Status::Scheduled) => self.prepare(now, index, effects),
            }
        }
        let returned: Vec<_> = self.memory.cases.iter_mut().filter_map(EventCase::returned).collect();
        self.memory.cases.retain(|case| !case.live.closed);
        if returned.is_empty() {
            return self.undo(now, effects);
        }
        for (observed, deadline) in returned {
            self.open_case(now, deadline, observed, effects);
        }
        self.advance(now, effects);
    }

    /// Handles a scheduled event.
    fn prepare(&mut self, now: Steady, index: usize, effects: &mut Vec<Effect>) {
        let case = &self.memory.cases[index];
        if !case.observed.names(&self.settings.me) {
            self.run_phase(now, index, Phase::Scheduled, effects);
            return;
        }
        match case.treatment {
            Treatment::Ignore => return,
            Treatment::ApproveAtOnce => return self.approve_if_ready(now, index, effects),
            Treatment::Prepare => {}
        }
        if !case.begun && !self.begin(now, index, effects) {
            return;
        }
        let state = self.run_phase(now, index, Phase::Scheduled, effects);
        let case = &mut self.memory.cases[index];
        let is_ready = match (state, case.on_failure) {
            (PhaseState::Open, _) => return,
            (PhaseState::Done, _) | (PhaseState::Failed, Failure::Approve) => true,
            (PhaseState::Failed, Failure::Hold) => false,
        };
        if !std::mem::replace(&mut case.live.logged_ready, true) {
            let kind = if is_ready { EventLogKind::Ready } else { EventLogKind::Held };
            effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
        }
        if is_ready {
            self.approve_if_ready(now, index, effects);
        }
    }

    /// Begins to prepare if this machine's turn has come; returns whether it has begun.
    fn begin(&mut self, now: Steady, index: usize, effects: &mut Vec<Effect>) -> bool {
        if !self.undo_is_over(now, index, effects) {
            return false;
        }
        let peers = &self.settings.peers;
        let case = &self.memory.cases[index];
        let turn = peers.at_once.map_or(Turn::Now, |at_once| self.views.turn(now, case, at_once, peers));
        let behind = match turn {
            Turn::Now => {
                self.begin_now(index, effects);
                return true;
            }
            Turn::Asking => Vec::new(),
            Turn::Behind(machines) => machines,
        };
        let case = &mut self.memory.cases[index];
        let logged = Some(!behind.is_empty());
        if case.live.logged_turn != logged {
            case.live.logged_turn = logged;
            let kind = EventLogKind::WaitsForTurn { behind };
            effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
        }
        false
    }

    /// True once no undo runs. Preparing and undoing at the same time would conflict, so preparation waits while there
    /// is time; then the undo is stopped.
    fn undo_is_over(&mut self, now: Steady, index: usize, effects: &mut Vec<Effect>) -> bool {
        if !self.undo_runs() {
            return true;
        }
        let case = &self.memory.cases[index];
        let hooks = self.settings.hooks_of(Phase::Scheduled, &case.observed);
        let needed = hooks.iter().fold(self.settings.spare, |sum, hook| sum.saturating_add(hook.limit));
        let has_time = case.observed.status == Status::Scheduled
            && case.live.deadline.is_none_or(|deadline| deadline.since(now) > needed);
        if !has_time {
            self.stop_undo(effects);
        }
        false
    }

    fn begin_now(&mut self, index: usize, effects: &mut Vec<Effect>) {
        self.memory.cases[index].begun = true;
        let observed = self.memory.cases[index].observed.clone();
        let undo: Vec<String> = self
            .settings
            .hooks_of(Phase::Undo, &observed)
            .into_iter()
            .map(|hook| hook.name.clone())
            .collect();
        for hook in undo {
            self.require_undo(&hook, &observed);
        }
        effects.push(Effect::Log(EventLogEntry { observed, kind: EventLogKind::Preparing }));
    }

    /// Handles a started event.
    fn run_started(&mut self, now: Steady, index: usize, effects: &mut Vec<Effect>) {
        let case = &self.memory.cases[index];
        let mine = case.observed.names(&self.settings.me);
        if mine && case.treatment != Treatment::Prepare {
            return;
        }
        let is_late = mine && (case.late || !case.begun);
        let has_late_hooks =
            self.settings.hooks_of(Phase::Scheduled, &case.observed).iter().any(|hook| hook.even_late);
        self.memory.cases[index].late = is_late;
        if is_late && has_late_hooks {
            if !self.memory.cases[index].begun {
                if !self.undo_is_over(now, index, effects) {
                    return;
                }
                self.begin_now(index, effects);
            }
            self.run_phase(now, index, Phase::Scheduled, effects);
        } else {
            self.skip_rest(index);
        }
        self.run_phase(now, index, Phase::Started, effects);
    }

    /// Skips hooks of the scheduled phase that wait for a retry.
    fn skip_rest(&mut self, index: usize) {
        let case = &mut self.memory.cases[index];
        for progress in case.runs.entry(Phase::Scheduled).or_default().values_mut() {
            if progress.retry_at.take().is_some() {
                progress.state = HookState::Skipped;
            }
        }
    }

    /// Handles an event that has left the document: stops its hooks, runs the completed or cancelled hooks, and closes
    /// the case.
    fn finish(&mut self, now: Steady, index: usize, outcome: EventOutcome, effects: &mut Vec<Effect>) {
        let case = &mut self.memory.cases[index];
        let mine = case.observed.names(&self.settings.me);
        if mine && case.treatment != Treatment::Prepare {
            case.live.closed = true;
            return;
        }
        let mut runs = false;
        let event = case.observed.id;
        for phase in [Phase::Scheduled, Phase::Started] {
            for (hook, progress) in case.runs.entry(phase).or_default() {
                progress.retry_at = None;
                runs |= progress.runs;
                if progress.runs && !std::mem::replace(&mut progress.stopped, true) {
                    effects.push(Effect::Stop(Task { event, phase, hook: hook.clone() }));
                }
            }
        }
        if runs {
            return;
        }
        let phase = match outcome {
            EventOutcome::Completed => Phase::Completed,
            EventOutcome::Cancelled => Phase::Cancelled,
        };
        match self.run_phase(now, index, phase, effects) {
            PhaseState::Open => {}
            PhaseState::Done | PhaseState::Failed => self.memory.cases[index].live.closed = true,
        }
    }

    /// Starts the next hook of a phase, unless one is running.
    fn run_phase(
        &mut self,
        now: Steady,
        index: usize,
        phase: Phase,
        effects: &mut Vec<Effect>,
    ) -> PhaseState {
        let case = &self.memory.cases[index];
        let hooks: Vec<Hook> = self.settings.hooks_of(phase, &case.observed).into_iter().cloned().collect();
        for hook in hooks {
            let case = &self.memory.cases[index];
            if phase == Phase::Scheduled
                && case.late
                && case.observed.names(&self.settings.me)
                && !hook.even_late
            {
                continue;
            }
            match case.progress(phase, &hook.name) {
                Some(HookProgress {
                    state: HookState::Done | HookState::Failed(_) | HookState::Skipped,
                    ..
                }) => continue,
                Some(HookProgress { runs: true, .. }) => return PhaseState::Open,
                Some(HookProgress { retry_at: Some(at), .. }) if now < *at => return PhaseState::Open,
                Some(_) | None => {}
            }
            return self.start(now, index, phase, &hook, effects);
        }
        if self.memory.cases[index].has_failed(phase) { PhaseState::Failed } else { PhaseState::Done }
    }

    /// Starts a hook with a deadline.
    fn start(
        &mut self,
        now: Steady,
        index: usize,
        phase: Phase,
        hook: &Hook,
        effects: &mut Vec<Effect>,
    ) -> PhaseState {
        let case = &mut self.memory.cases[index];
        let deadline = case.live.deadline.filter(|_| case.observed.status == Status::Scheduled);
        let own = now.plus(hook.limit);
        let until = match deadline {
            Some(deadline) if phase == Phase::Scheduled => own.min(deadline.minus(self.settings.spare)),
            Some(_) | None => own,
        };
        let progress = case
            .runs
            .entry(phase)
            .or_default()
            .entry(hook.name.clone())
            .or_insert_with(|| HookProgress::new(HookState::Begun));
        if until <= now {
            progress.state = HookState::Failed("no time left".to_owned());
            let kind = EventLogKind::HookFailed {
                phase,
                hook: hook.name.clone(),
                reason: "no time left".to_owned(),
            };
            effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
            return self.run_phase(now, index, phase, effects);
        }
        progress.state = HookState::Begun;
        progress.attempts += 1;
        progress.retry_at = None;
        progress.runs = true;
        let attempt = progress.attempts;
        let (observed, outcome) = (case.observed.clone(), case.outcome);
        if hook.undoes && phase == Phase::Scheduled && case.begun {
            self.require_undo(&hook.name, &observed);
        }
        let pending = self.memory.pending_undo.get(&hook.name);
        let memory = pending.and_then(|pending| pending.memory.clone());
        let pending_undo = pending.map(|pending| pending.since);
        let task = Task { event: observed.id, phase, hook: hook.name.clone() };
        effects.push(Effect::Run(Run {
            task,
            attempt,
            until,
            observed,
            deadline,
            outcome,
            pending_undo,
            memory,
        }));
        PhaseState::Open
    }
}
