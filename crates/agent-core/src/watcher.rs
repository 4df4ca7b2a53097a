//! The watcher: its inputs and the cases that it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_imds::MalformedEvent;
use forewarn_types::{EventId, Steady, Timestamp};

use crate::effect::{ApprovalResult, Effect, EventLogEntry, EventLogKind, HookOutcome, Task};
use crate::event_case::{Consent, EventCase, EventOutcome, HookState, LiveState};
use crate::memory::{Memory, PendingUndo};
use crate::observation::{Observation, ObservedEvent, Status};
use crate::peers::{PeerEventStatus, PeerReport, PeerStatus, PeerViews, PeersToPoll, is_given};
use crate::settings::{Approval, Failure, Phase, Settings, Treatment};
use crate::stage::Stage;

/// Pause before a failed hook is retried.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Interval at which a waiting machine checks for its turn.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Decides what an agent does about events.
#[derive(Clone, Debug)]
pub struct Watcher {
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    pub(crate) views: PeerViews,
    pub(crate) logged_undoing: bool,
    /// True once this process has read a document. Nothing is done before that.
    pub(crate) has_document: bool,
    /// Malformed events of the last document.
    skipped: BTreeSet<MalformedEvent>,
    /// Number of malformed events without an id in the last document.
    nameless: usize,
}

impl Watcher {
    /// Creates a watcher that continues from a stored memory.
    #[must_use]
    pub fn new(settings: Settings, memory: Memory) -> Self {
        Self {
            settings,
            memory,
            views: PeerViews::default(),
            logged_undoing: false,
            has_document: false,
            skipped: BTreeSet::new(),
            nameless: 0,
        }
    }

    /// The state that must be stored before effects are performed.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Replaces the settings. Progress of pending events is kept.
    pub fn change(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The pending events in the order of their first observation, each with the end of its notice, if known.
    pub fn cases(&self) -> impl Iterator<Item = (&EventCase, Option<Steady>)> {
        self.memory.cases.iter().map(|case| {
            let is_open = case.outcome.is_none() && case.observed.status == Status::Scheduled;
            (case, case.live.deadline.filter(|_| is_open))
        })
    }

    /// Handles a new document.
    pub fn observe(&mut self, now: Steady, observation: Observation<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.has_document = true;
        let known: BTreeMap<_, _> = self.memory.cases.iter().map(|case| case.observed.id).zip(0..).collect();
        let mut there = BTreeSet::new();
        let mut malformed: BTreeSet<_> = observation.document.malformed.iter().cloned().collect();
        for event in &observation.document.events {
            let observed = match ObservedEvent::read(event, observation.edition) {
                Ok(observed) => observed,
                Err(error) => {
                    malformed.insert(error);
                    continue;
                }
            };
            there.insert(observed.id);
            let deadline = observed.not_before.map(|at| now.plus(at.0.since(observation.date)));
            match known.get(&event.id) {
                Some(index) => self.update_case(now, deadline, *index, observed, &mut effects),
                None => self.open_case(now, deadline, observed, &mut effects),
            }
        }
        let nameless = observation.document.malformed.iter().filter(|event| event.id.is_none()).count();
        self.mark_malformed(&there, &malformed, nameless);
        for index in known.into_values() {
            let case = &mut self.memory.cases[index];
            match (case.outcome, there.contains(&case.observed.id)) {
                (None, false) if case.live.is_malformed => self.keep_malformed(now, observation.date, index),
                (None, false) => self.record_outcome(observation.date, index, &mut effects),
                (Some(_), false) => case.live.again = None,
                (None | Some(_), true) => {}
            }
            self.memory.cases[index].live.confirmed = true;
        }
        self.log_skipped(malformed, &mut effects);
        self.advance(now, &mut effects);
        effects
    }

    /// Handles the result of a hook.
    pub fn on_hook_result(&mut self, now: Steady, task: &Task, hook_outcome: &HookOutcome) -> Vec<Effect> {
        let mut effects = Vec::new();
        match task.phase {
            Phase::Undo => self.on_undo_result(now, &task.hook, hook_outcome, &mut effects),
            Phase::Scheduled | Phase::Started | Phase::Completed | Phase::Cancelled => {
                self.record_hook_result(now, task, hook_outcome, &mut effects);
            }
        }
        self.advance(now, &mut effects);
        effects
    }

    /// Handles the result of an approval.
    pub fn on_approval_result(&mut self, now: Steady, event: EventId, result: ApprovalResult) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.record_approval(now, event, result, &mut effects);
        self.advance(now, &mut effects);
        effects
    }

    /// Takes the service's time from a response without a new document.
    ///
    /// Deadlines follow that clock rather than the time of the last document, because it may be a virtual clock.
    pub fn on_clock(&mut self, now: Steady, date: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for case in &mut self.memory.cases {
            if case.live.confirmed && case.observed.status == Status::Scheduled {
                case.live.deadline = case.observed.not_before.map(|at| now.plus(at.0.since(date)));
            }
        }
        self.advance(now, &mut effects);
        effects
    }

    /// Handles the report of one peer.
    pub fn on_peer_report(&mut self, now: Steady, report: PeerReport) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.views.record(now, report);
        for case in &mut self.memory.cases {
            if case.outcome.is_none() && !is_given(case.consent) && self.views.has_approval(case.observed.id)
            {
                case.consent = Consent::ByPeer;
            }
        }
        self.advance(now, &mut effects);
        effects
    }

    /// Records the end of a round that began at `begun`: every peer has responded or timed out.
    pub fn on_round_end(&mut self, now: Steady, begun: Steady) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.views.record_round(begun);
        self.advance(now, &mut effects);
        effects
    }

    /// Handles the passing of time.
    pub fn tick(&mut self, now: Steady) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.advance(now, &mut effects);
        effects
    }

    /// The status that this machine reports to its peers.
    #[must_use]
    pub fn peer_status(&self) -> PeerStatus {
        let is_open = |case: &&EventCase| case.outcome.is_none() && case.observed.names(&self.settings.me);
        let open = self.memory.cases.iter().filter(is_open).map(|case| {
            let approved = case.consent == Consent::Given;
            (case.observed.id.to_string(), PeerEventStatus { stage: self.stage(case), approved })
        });
        // The machine stays drained until all work is undone.
        let undone = self
            .owed_events()
            .map(|id| (id.to_string(), PeerEventStatus { stage: Stage::Ready, approved: false }));
        PeerStatus { name: self.settings.me.clone(), events: undone.chain(open).collect() }
    }

    /// The peers to poll.
    #[must_use]
    pub fn peers_to_poll(&self) -> PeersToPoll {
        let waits = |case: &EventCase| {
            case.live.confirmed && case.outcome.is_none() && case.observed.status == Status::Scheduled
        };
        let open =
            || self.memory.cases.iter().filter(|case| waits(case) && case.observed.names(&self.settings.me));
        if self.settings.peers.at_once.is_some() && open().any(|case| self.is_to_prepare(case) && !case.begun)
        {
            return PeersToPoll::All;
        }
        let led = open().filter(|case| case.approval == Approval::Leader && !is_given(case.consent));
        let mut names: Vec<String> = led.flat_map(|case| case.observed.resources.clone()).collect();
        names.retain(|name| *name != self.settings.me);
        names.sort();
        names.dedup();
        if names.is_empty() { PeersToPoll::None } else { PeersToPoll::Named(names) }
    }

    /// True if this machine should get no new work: it prepares for an event, or has work to undo.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.memory.cases.iter().any(EventCase::drains) || !self.memory.pending_undo.is_empty()
    }

    /// Time of the next [`Watcher::tick`], unless another input comes first.
    #[must_use]
    pub fn next_wake(&self, now: Steady) -> Option<Steady> {
        if !self.has_document {
            return None;
        }
        let cases = self.memory.cases.iter().flat_map(|case| {
            let retries =
                case.runs.values().flat_map(|runs| runs.values()).filter_map(|progress| progress.retry_at);
            let peers = &self.settings.peers;
            let waits = case.outcome.is_none() && case.observed.status == Status::Scheduled;
            let silence = (waits && case.approval == Approval::Leader)
                .then(|| self.views.next_silence(now, case, &self.settings.me, peers))
                .flatten();
            let turn = (waits && self.is_to_prepare(case) && !case.begun).then(|| now.plus(LEAST_TIME));
            let bounds = case.live.deadline.filter(|_| waits).into_iter().flat_map(|deadline| {
                let left = match peers.silence {
                    crate::settings::Silence::GoOnWhenLeft(left) => left,
                    crate::settings::Silence::Wait | crate::settings::Silence::GoOn => Duration::ZERO,
                };
                [deadline.minus(left), deadline.minus(peers.reserve)]
            });
            retries.chain(case.live.approve_at).chain(silence).chain(turn).chain(bounds).collect::<Vec<_>>()
        });
        cases.chain(self.next_undo()).filter(|at| *at > now).min()
    }

    /// Updates the case of an event that is still listed.
    fn update_case(
        &mut self,
        now: Steady,
        deadline: Option<Steady>,
        index: usize,
        mut observed: ObservedEvent,
        effects: &mut Vec<Effect>,
    ) {
        let case = &mut self.memory.cases[index];
        if case.outcome.is_some() {
            case.live.again = Some((observed, deadline));
            return;
        }
        if case.observed.status == Status::Started && observed.status == Status::Scheduled {
            // An event never returns to Scheduled: this document is older than the last one.
            observed = case.observed.clone();
        }
        if !case.live.confirmed {
            let in_doubt = case.consent == Consent::Tried;
            case.live = LiveState { confirmed: true, since: now, in_doubt, ..LiveState::default() };
        }
        if deadline.is_some() {
            case.live.deadline = deadline;
        }
        let has_started = case.observed.status == Status::Scheduled && observed.status == Status::Started;
        observed.not_before = observed.not_before.or(case.observed.not_before);
        let is_same = |pending: &&mut PendingUndo| pending.observed.id == observed.id;
        for pending in self.memory.pending_undo.values_mut().filter(is_same) {
            pending.observed = observed.clone();
        }
        case.observed = observed;
        if has_started {
            effects.push(Effect::Log(EventLogEntry {
                observed: case.observed.clone(),
                kind: EventLogKind::Started,
            }));
        }
    }

    /// Marks the cases that the document lists in a malformed entry. A new malformed entry without an id may be any
    /// case that the document lacks.
    fn mark_malformed(
        &mut self,
        there: &BTreeSet<EventId>,
        malformed: &BTreeSet<MalformedEvent>,
        nameless: usize,
    ) {
        let ids: BTreeSet<_> = malformed.iter().filter_map(|event| event.id).collect();
        let has_more = nameless > self.nameless;
        for case in &mut self.memory.cases {
            let id = &case.observed.id;
            let may_be_nameless = nameless > 0 && !there.contains(id) && (has_more || case.live.is_malformed);
            case.live.is_malformed = ids.contains(id) || may_be_nameless;
        }
        self.nameless = nameless;
    }

    /// Confirms a malformed event with the values that were last observed.
    fn keep_malformed(&mut self, now: Steady, date: Timestamp, index: usize) {
        let case = &mut self.memory.cases[index];
        if case.live.confirmed {
            return;
        }
        let not_before = case.observed.not_before.filter(|_| case.observed.status == Status::Scheduled);
        let deadline = not_before.map(|at| now.plus(at.0.since(date)));
        let in_doubt = case.consent == Consent::Tried;
        case.live = LiveState {
            confirmed: true,
            since: now,
            in_doubt,
            deadline,
            is_malformed: true,
            ..LiveState::default()
        };
    }

    /// Logs malformed events that were not logged before.
    fn log_skipped(&mut self, malformed: BTreeSet<MalformedEvent>, effects: &mut Vec<Effect>) {
        let fresh: Vec<_> = malformed.difference(&self.skipped).cloned().collect();
        if !fresh.is_empty() {
            effects.push(Effect::Skip(fresh));
        }
        self.skipped = malformed;
    }

    /// Opens a case for a new event.
    pub(crate) fn open_case(
        &mut self,
        now: Steady,
        deadline: Option<Steady>,
        observed: ObservedEvent,
        effects: &mut Vec<Effect>,
    ) {
        let mine = observed.names(&self.settings.me);
        let late = observed.status == Status::Started;
        let rule = self.settings.rule(&observed).filter(|_| mine);
        let treatment = rule.map_or(Treatment::default(), |rule| rule.treatment);
        let note = |kind| Effect::Log(EventLogEntry { observed: observed.clone(), kind });
        effects.push(note(EventLogKind::Observed { mine }));
        if mine && !observed.has_known_type() {
            effects.push(note(EventLogKind::UnknownType));
        }
        match treatment {
            Treatment::Ignore => effects.push(note(EventLogKind::Ignored)),
            Treatment::Prepare if mine && late => effects.push(note(EventLogKind::TooLate)),
            Treatment::Prepare | Treatment::ApproveAtOnce => {}
        }
        let case = EventCase {
            treatment,
            approval: self.settings.approval_of(&observed),
            on_failure: rule.and_then(|rule| rule.on_failure).unwrap_or(self.settings.on_failure),
            late,
            begun: false,
            consent: Consent::None,
            outcome: None,
            runs: BTreeMap::new(),
            live: LiveState { confirmed: true, since: now, deadline, ..LiveState::default() },
            observed,
        };
        self.memory.cases.push(case);
    }

    /// Records the outcome of an event that has left the document.
    ///
    /// The event was cancelled if it was scheduled, had no known approval, and its time had not come. Otherwise it took
    /// place.
    fn record_outcome(&mut self, date: Timestamp, index: usize, effects: &mut Vec<Effect>) {
        let case = &mut self.memory.cases[index];
        let is_early = case.observed.not_before.is_some_and(|at| date < at.0);
        let unapproved = case.consent == Consent::None;
        let outcome = match case.observed.status {
            Status::Scheduled if unapproved && is_early => EventOutcome::Cancelled,
            Status::Scheduled | Status::Started => EventOutcome::Completed,
        };
        case.outcome = Some(outcome);
        for pending in
            self.memory.pending_undo.values_mut().filter(|pending| pending.observed.id == case.observed.id)
        {
            pending.outcome = Some(outcome);
        }
        let kind = match outcome {
            EventOutcome::Completed => EventLogKind::Completed,
            EventOutcome::Cancelled => EventLogKind::Cancelled,
        };
        effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
        self.try_again();
    }

    /// Records the result of a hook.
    fn record_hook_result(
        &mut self,
        now: Steady,
        task: &Task,
        hook_outcome: &HookOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let retries = self.settings.hook(&task.hook).map_or(0, |hook| hook.retries);
        if let (Some(memory), Some(pending)) =
            (&hook_outcome.memory, self.memory.pending_undo.get_mut(&task.hook))
        {
            pending.memory = Some(memory.clone());
        }
        let Some(case) = self.memory.cases.iter_mut().find(|case| case.observed.id == task.event) else {
            return;
        };
        let is_over = case.outcome.is_some() && matches!(task.phase, Phase::Scheduled | Phase::Started);
        let deadline = case.live.deadline;
        let Some(progress) = case.progress_mut(task.phase, &task.hook) else { return };
        progress.runs = false;
        let again = now.plus(RETRY_PAUSE);
        let has_time = task.phase != Phase::Scheduled || deadline.is_none_or(|deadline| again < deadline);
        match &hook_outcome.result {
            Ok(()) => progress.state = HookState::Done,
            Err(_) if progress.stopped => progress.state = HookState::Skipped,
            Err(_) if progress.attempts <= retries && has_time && !is_over => progress.retry_at = Some(again),
            Err(reason) => {
                progress.state = HookState::Failed(reason.clone());
                let kind = EventLogKind::HookFailed {
                    phase: task.phase,
                    hook: task.hook.clone(),
                    reason: reason.clone(),
                };
                effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
            }
        }
    }

    /// True if no event keeps this machine drained.
    pub(crate) fn is_quiet(&self) -> bool {
        let pending = |case: &EventCase| case.begun || (case.outcome.is_none() && self.is_to_prepare(case));
        self.has_document && !self.memory.cases.iter().any(pending)
    }

    fn is_to_prepare(&self, case: &EventCase) -> bool {
        case.treatment == Treatment::Prepare && case.observed.names(&self.settings.me)
    }

    pub(crate) fn stage(&self, case: &EventCase) -> Stage {
        match case.treatment {
            Treatment::Ignore => return Stage::Idle,
            Treatment::ApproveAtOnce => return Stage::Ready,
            Treatment::Prepare => {}
        }
        let hooks = self.settings.hooks_of(Phase::Scheduled, &case.observed);
        let ended = hooks.iter().all(|hook| {
            case.progress(Phase::Scheduled, &hook.name).is_some_and(|progress| {
                !progress.runs && progress.retry_at.is_none() && progress.state != HookState::Begun
            })
        });
        match (case.begun, ended, case.has_failed(Phase::Scheduled), case.on_failure) {
            (false, ..) if case.late => Stage::Idle,
            (false, ..) => Stage::Waiting,
            (true, false, ..) => Stage::Preparing,
            (true, true, true, Failure::Hold) => Stage::Failed,
            (true, true, true, Failure::Approve) | (true, true, false, _) => Stage::Ready,
        }
    }
}
