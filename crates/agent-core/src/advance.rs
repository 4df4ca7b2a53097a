//! What can be done now: every case goes on as far as it can.

use forewarn_types::Steady;

use crate::case::{Case, Gone, PhaseState, Progress, State};
use crate::deed::{Deed, Note, Run, Task, What};
use crate::seen::Status;
use crate::settings::{Failure, Hook, Phase, Treatment};
use crate::watcher::Watcher;

impl Watcher {
    /// Everything that can be done now is said, and nothing twice.
    pub(crate) fn advance(&mut self, now: Steady, deeds: &mut Vec<Deed>) {
        if !self.has_seen {
            return;
        }
        for index in 0..self.memory.cases.len() {
            if !self.memory.cases[index].live.confirmed {
                continue;
            }
            let case = &self.memory.cases[index];
            match (case.gone, case.seen.status) {
                (Some(gone), _) => self.finish(now, index, gone, deeds),
                (None, Status::Started) => self.accompany(now, index, deeds),
                (None, Status::Scheduled) => self.prepare(now, index, deeds),
            }
        }
        let returned: Vec<_> = self.memory.cases.iter_mut().filter_map(Case::returned).collect();
        self.memory.cases.retain(|case| !case.live.closed);
        if returned.is_empty() {
            return self.undo(now, deeds);
        }
        for (seen, deadline) in returned {
            self.open(now, deadline, seen, deeds);
        }
        self.advance(now, deeds);
    }

    /// An event that is announced.
    fn prepare(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) {
        let case = &self.memory.cases[index];
        if !case.seen.names(&self.settings.me) {
            self.run_phase(now, index, Phase::Scheduled, deeds);
            return;
        }
        match case.treatment {
            Treatment::Ignore => return,
            Treatment::ApproveAtOnce => return self.consider(now, index, deeds),
            Treatment::Prepare => {}
        }
        if !case.begun && !self.begin(now, index, deeds) {
            return;
        }
        let state = self.run_phase(now, index, Phase::Scheduled, deeds);
        let case = &mut self.memory.cases[index];
        let is_ready = match (state, case.on_failure) {
            (PhaseState::Open, _) => return,
            (PhaseState::Done, _) | (PhaseState::Failed, Failure::Approve) => true,
            (PhaseState::Failed, Failure::Hold) => false,
        };
        if !std::mem::replace(&mut case.live.told_ready, true) {
            let what = if is_ready { What::Ready } else { What::Held };
            deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
        }
        if is_ready {
            self.consider(now, index, deeds);
        }
    }

    /// This machine's turn to prepare, if it has come.
    fn begin(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) -> bool {
        if !self.undo_is_over(now, index, deeds) {
            return false;
        }
        let peers = &self.settings.peers;
        let case = &self.memory.cases[index];
        let has_turn = peers.at_once.is_none_or(|at_once| self.views.has_turn(now, case, at_once, peers));
        let seen = case.seen.clone();
        let live = &mut self.memory.cases[index].live;
        if !has_turn {
            if !std::mem::replace(&mut live.told_turn, true) {
                deeds.push(Deed::Note(Note { seen, what: What::WaitsForTurn }));
            }
            return false;
        }
        self.begin_now(index, deeds);
        true
    }

    /// What is being undone would be done again beside it, so that is waited for, as long as there is time; then it is ended.
    fn undo_is_over(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) -> bool {
        if !self.undo_runs() {
            return true;
        }
        let case = &self.memory.cases[index];
        let hooks = self.settings.hooks_of(Phase::Scheduled, &case.seen);
        let needed = hooks.iter().fold(self.settings.spare, |sum, hook| sum.saturating_add(hook.limit));
        let has_time = case.seen.status == Status::Scheduled
            && case.live.deadline.is_none_or(|deadline| deadline.since(now) > needed);
        if !has_time {
            self.stop_undo(deeds);
        }
        false
    }

    fn begin_now(&mut self, index: usize, deeds: &mut Vec<Deed>) {
        self.memory.cases[index].begun = true;
        let seen = self.memory.cases[index].seen.clone();
        let undo: Vec<String> =
            self.settings.hooks_of(Phase::Undo, &seen).into_iter().map(|hook| hook.name.clone()).collect();
        for hook in undo {
            self.owe(&hook, &seen);
        }
        deeds.push(Deed::Note(Note { seen, what: What::Preparing }));
    }

    /// An event that has started.
    fn accompany(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) {
        let case = &self.memory.cases[index];
        let mine = case.seen.names(&self.settings.me);
        if mine && case.treatment != Treatment::Prepare {
            return;
        }
        let is_late = mine && (case.late || !case.begun);
        let has_late_hooks =
            self.settings.hooks_of(Phase::Scheduled, &case.seen).iter().any(|hook| hook.even_late);
        self.memory.cases[index].late = is_late;
        if is_late && has_late_hooks {
            if !self.memory.cases[index].begun {
                if !self.undo_is_over(now, index, deeds) {
                    return;
                }
                self.begin_now(index, deeds);
            }
            self.run_phase(now, index, Phase::Scheduled, deeds);
        } else {
            self.skip_rest(index);
        }
        self.run_phase(now, index, Phase::Started, deeds);
    }

    /// Hooks that have not begun, and hooks that wait to be tried again, no longer will.
    fn skip_rest(&mut self, index: usize) {
        let case = &mut self.memory.cases[index];
        for progress in case.runs.entry(Phase::Scheduled).or_default().values_mut() {
            if progress.again_at.take().is_some() {
                progress.state = State::Skipped;
            }
        }
    }

    /// An event that has left the document: what runs for it is ended, then it is told, then the case is closed.
    fn finish(&mut self, now: Steady, index: usize, gone: Gone, deeds: &mut Vec<Deed>) {
        let case = &mut self.memory.cases[index];
        let mine = case.seen.names(&self.settings.me);
        if mine && case.treatment != Treatment::Prepare {
            case.live.closed = true;
            return;
        }
        let mut runs = false;
        let event = case.seen.id;
        for phase in [Phase::Scheduled, Phase::Started] {
            for (hook, progress) in case.runs.entry(phase).or_default() {
                progress.again_at = None;
                runs |= progress.runs;
                if progress.runs && !std::mem::replace(&mut progress.stopped, true) {
                    deeds.push(Deed::Stop(Task { event, phase, hook: hook.clone() }));
                }
            }
        }
        if runs {
            return;
        }
        let phase = match gone {
            Gone::Completed => Phase::Completed,
            Gone::Cancelled => Phase::Cancelled,
        };
        match self.run_phase(now, index, phase, deeds) {
            PhaseState::Open => {}
            PhaseState::Done | PhaseState::Failed => self.memory.cases[index].live.closed = true,
        }
    }

    /// Starts the next hook of a phase, if none of them runs.
    fn run_phase(&mut self, now: Steady, index: usize, phase: Phase, deeds: &mut Vec<Deed>) -> PhaseState {
        let case = &self.memory.cases[index];
        let hooks: Vec<Hook> = self.settings.hooks_of(phase, &case.seen).into_iter().cloned().collect();
        for hook in hooks {
            let case = &self.memory.cases[index];
            if phase == Phase::Scheduled && case.late && case.seen.names(&self.settings.me) && !hook.even_late
            {
                continue;
            }
            match case.progress(phase, &hook.name) {
                Some(Progress { state: State::Done | State::Failed(_) | State::Skipped, .. }) => continue,
                Some(Progress { runs: true, .. }) => return PhaseState::Open,
                Some(Progress { again_at: Some(at), .. }) if now < *at => return PhaseState::Open,
                Some(_) | None => {}
            }
            return self.start(now, index, phase, &hook, deeds);
        }
        if self.memory.cases[index].has_failed(phase) { PhaseState::Failed } else { PhaseState::Done }
    }

    /// Starts a hook, with as much time as there is.
    fn start(
        &mut self,
        now: Steady,
        index: usize,
        phase: Phase,
        hook: &Hook,
        deeds: &mut Vec<Deed>,
    ) -> PhaseState {
        let case = &mut self.memory.cases[index];
        let deadline = case.live.deadline.filter(|_| case.seen.status == Status::Scheduled);
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
            .or_insert_with(|| Progress::new(State::Begun));
        if until <= now {
            progress.state = State::Failed("there is no time left for it".to_owned());
            let what = What::HookFailed {
                phase,
                hook: hook.name.clone(),
                why: "there is no time left for it".to_owned(),
            };
            deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
            return self.run_phase(now, index, phase, deeds);
        }
        progress.state = State::Begun;
        progress.attempts += 1;
        progress.again_at = None;
        progress.runs = true;
        let attempt = progress.attempts;
        let (seen, outcome) = (case.seen.clone(), case.gone);
        if hook.undoes && phase == Phase::Scheduled && case.begun {
            self.owe(&hook.name, &seen);
        }
        let owed = self.memory.owed.get(&hook.name);
        let memory = owed.and_then(|owed| owed.memory.clone());
        let owed = owed.map(|owed| owed.since);
        let task = Task { event: seen.id, phase, hook: hook.name.clone() };
        deeds.push(Deed::Run(Run { task, attempt, until, seen, deadline, outcome, owed, memory }));
        PhaseState::Open
    }
}
