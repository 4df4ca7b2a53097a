//! The watcher: what it is told, and what it makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_imds::MalformedEvent;
use forewarn_types::{EventId, Steady, Timestamp};

use crate::case::{Case, Consent, Gone, Live, State};
use crate::deed::{Answer, Deed, Ending, Note, Task, What};
use crate::memory::Memory;
use crate::peers::{Asking, PeerReport, PeerWord, Stage, Standing, Views, is_given};
use crate::seen::{Seen, Sight, Status};
use crate::settings::{Approval, Failure, Phase, Settings, Treatment};

/// Before a hook that failed is tried again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A hook without a deadline and with no time of its own still has this much.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// What an agent makes of what it learns.
#[derive(Clone, Debug)]
pub struct Watcher {
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    pub(crate) views: Views,
    pub(crate) told_undoing: bool,
    /// Whether a document was seen in this life: before that, nothing is done.
    pub(crate) has_seen: bool,
    /// Events of the last document that were skipped.
    skipped: BTreeSet<MalformedEvent>,
    /// Number of events of the last document whose ids cannot be read.
    nameless: usize,
}

impl Watcher {
    /// A watcher that goes on where the one before it was.
    #[must_use]
    pub fn new(settings: Settings, memory: Memory) -> Self {
        Self {
            settings,
            memory,
            views: Views::default(),
            told_undoing: false,
            has_seen: false,
            skipped: BTreeSet::new(),
            nameless: 0,
        }
    }

    /// What must not be lost.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What it was told once and for all.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// From now on, that is what it was told. Nothing is forgotten: what has run has run.
    pub fn change(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// All that is in hand, in the order in which it was seen first, each with the end of its notice, if that is known.
    pub fn cases(&self) -> impl Iterator<Item = (&Case, Option<Steady>)> {
        self.memory.cases.iter().map(|case| {
            let is_open = case.gone.is_none() && case.seen.status == Status::Scheduled;
            (case, case.live.deadline.filter(|_| is_open))
        })
    }

    /// A document was read.
    pub fn see(&mut self, now: Steady, sight: Sight<'_>) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.has_seen = true;
        let known: BTreeMap<_, _> = self.memory.cases.iter().map(|case| case.seen.id).zip(0..).collect();
        let mut there = BTreeSet::new();
        let mut malformed: BTreeSet<_> = sight.document.malformed.iter().cloned().collect();
        for event in &sight.document.events {
            let seen = match Seen::read(event, sight.edition) {
                Ok(seen) => seen,
                Err(problem) => {
                    malformed.insert(problem);
                    continue;
                }
            };
            there.insert(seen.id);
            let deadline = seen.not_before.map(|at| now.plus(at.0.since(sight.date)));
            match known.get(&event.id) {
                Some(index) => self.meet(now, deadline, *index, seen, &mut deeds),
                None => self.open(now, deadline, seen, &mut deeds),
            }
        }
        let nameless = sight.document.malformed.iter().filter(|event| event.id.is_none()).count();
        self.mark_malformed(&there, &malformed, nameless);
        for index in known.into_values() {
            let case = &mut self.memory.cases[index];
            match (case.gone, there.contains(&case.seen.id)) {
                (None, false) if case.live.is_malformed => self.hold(now, sight.date, index),
                (None, false) => self.miss(sight.date, index, &mut deeds),
                (Some(_), false) => case.live.again = None,
                (None | Some(_), true) => {}
            }
            self.memory.cases[index].live.confirmed = true;
        }
        self.skip(malformed, &mut deeds);
        self.advance(now, &mut deeds);
        deeds
    }

    /// A hook has ended.
    pub fn ended(&mut self, now: Steady, task: &Task, ending: &Ending) -> Vec<Deed> {
        let mut deeds = Vec::new();
        match task.phase {
            Phase::Undo => self.undone(now, &task.hook, ending, &mut deeds),
            Phase::Scheduled | Phase::Started | Phase::Completed | Phase::Cancelled => {
                self.conclude(now, task, ending, &mut deeds);
            }
        }
        self.advance(now, &mut deeds);
        deeds
    }

    /// An approval was answered.
    pub fn answered(&mut self, now: Steady, event: EventId, answer: Answer) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.take_answer(now, event, answer, &mut deeds);
        self.advance(now, &mut deeds);
        deeds
    }

    /// The service's clock was seen, and nothing else is new.
    ///
    /// The time left is what that clock says, not what was left when a document came: it may be a virtual one.
    pub fn synchronise(&mut self, now: Steady, date: Timestamp) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for case in &mut self.memory.cases {
            if case.live.confirmed && case.seen.status == Status::Scheduled {
                case.live.deadline = case.seen.not_before.map(|at| now.plus(at.0.since(date)));
            }
        }
        self.advance(now, &mut deeds);
        deeds
    }

    /// Takes the answer of one peer.
    pub fn heard(&mut self, now: Steady, report: PeerReport) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.views.hear(now, report);
        for case in &mut self.memory.cases {
            if case.gone.is_none() && !is_given(case.consent) && self.views.say_approved(case.seen.id) {
                case.consent = Consent::ByPeer;
            }
        }
        self.advance(now, &mut deeds);
        deeds
    }

    /// Notes that every peer has been asked since `begun`, and has answered or had its time.
    pub fn asked_all(&mut self, now: Steady, begun: Steady) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.views.asked(begun);
        self.advance(now, &mut deeds);
        deeds
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Steady) -> Vec<Deed> {
        let mut deeds = Vec::new();
        self.advance(now, &mut deeds);
        deeds
    }

    /// What this machine says of itself.
    #[must_use]
    pub fn word(&self) -> PeerWord {
        let is_open = |case: &&Case| case.gone.is_none() && case.seen.names(&self.settings.me);
        let open = self.memory.cases.iter().filter(is_open).map(|case| {
            let approved = case.consent == Consent::Given;
            (case.seen.id.to_string(), Standing { stage: self.stage(case), approved })
        });
        // Until all is undone, the machine is as drained as it was.
        let undone =
            self.owed_events().map(|id| (id.to_string(), Standing { stage: Stage::Ready, approved: false }));
        PeerWord { name: self.settings.me.clone(), events: undone.chain(open).collect() }
    }

    /// Whom to ask how they are.
    #[must_use]
    pub fn asking(&self) -> Asking {
        let waits =
            |case: &Case| case.live.confirmed && case.gone.is_none() && case.seen.status == Status::Scheduled;
        let open =
            || self.memory.cases.iter().filter(|case| waits(case) && case.seen.names(&self.settings.me));
        if self.settings.peers.at_once.is_some() && open().any(|case| self.is_to_prepare(case) && !case.begun)
        {
            return Asking::Everybody;
        }
        let led = open().filter(|case| case.approval == Approval::Leader && !is_given(case.consent));
        let mut names: Vec<String> = led.flat_map(|case| case.seen.resources.clone()).collect();
        names.retain(|name| *name != self.settings.me);
        names.sort();
        names.dedup();
        if names.is_empty() { Asking::Nobody } else { Asking::These(names) }
    }

    /// Whether this machine should get no new work: something is prepared for, or not undone yet.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.memory.cases.iter().any(Case::drains) || !self.memory.owed.is_empty()
    }

    /// When to call [`Watcher::tick`], unless something else happens before.
    #[must_use]
    pub fn next_wake(&self, now: Steady) -> Option<Steady> {
        if !self.has_seen {
            return None;
        }
        let cases = self.memory.cases.iter().flat_map(|case| {
            let retries =
                case.runs.values().flat_map(|runs| runs.values()).filter_map(|progress| progress.again_at);
            let peers = &self.settings.peers;
            let waits = case.gone.is_none() && case.seen.status == Status::Scheduled;
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

    /// An event that is in hand is in the document.
    fn meet(
        &mut self,
        now: Steady,
        deadline: Option<Steady>,
        index: usize,
        mut seen: Seen,
        deeds: &mut Vec<Deed>,
    ) {
        let case = &mut self.memory.cases[index];
        if case.gone.is_some() {
            case.live.again = Some((seen, deadline));
            return;
        }
        if case.seen.status == Status::Started && seen.status == Status::Scheduled {
            // No event goes back. Whoever says so has not heard yet that it has started.
            seen = case.seen.clone();
        }
        if !case.live.confirmed {
            let in_doubt = case.consent == Consent::Tried;
            case.live = Live { confirmed: true, since: now, in_doubt, ..Live::default() };
        }
        if deadline.is_some() {
            case.live.deadline = deadline;
        }
        let has_started = case.seen.status == Status::Scheduled && seen.status == Status::Started;
        seen.not_before = seen.not_before.or(case.seen.not_before);
        case.seen = seen;
        if has_started {
            deeds.push(Deed::Note(Note { seen: case.seen.clone(), what: What::Started }));
        }
    }

    /// Marks the cases that the document has in a form that cannot be read. An event without a readable id that was not there before
    /// may be any of those that the document lacks now.
    fn mark_malformed(
        &mut self,
        there: &BTreeSet<EventId>,
        malformed: &BTreeSet<MalformedEvent>,
        nameless: usize,
    ) {
        let ids: BTreeSet<_> = malformed.iter().filter_map(|event| event.id).collect();
        let has_more = nameless > self.nameless;
        for case in &mut self.memory.cases {
            let id = &case.seen.id;
            let may_be_nameless = nameless > 0 && !there.contains(id) && (has_more || case.live.is_malformed);
            case.live.is_malformed = ids.contains(id) || may_be_nameless;
        }
        self.nameless = nameless;
    }

    /// Goes on with an event as it was last seen.
    fn hold(&mut self, now: Steady, date: Timestamp, index: usize) {
        let case = &mut self.memory.cases[index];
        if case.live.confirmed {
            return;
        }
        let not_before = case.seen.not_before.filter(|_| case.seen.status == Status::Scheduled);
        let deadline = not_before.map(|at| now.plus(at.0.since(date)));
        let in_doubt = case.consent == Consent::Tried;
        case.live =
            Live { confirmed: true, since: now, in_doubt, deadline, is_malformed: true, ..Live::default() };
    }

    /// Names the events that were not skipped before.
    fn skip(&mut self, malformed: BTreeSet<MalformedEvent>, deeds: &mut Vec<Deed>) {
        let fresh: Vec<_> = malformed.difference(&self.skipped).cloned().collect();
        if !fresh.is_empty() {
            deeds.push(Deed::Skip(fresh));
        }
        self.skipped = malformed;
    }

    /// An event is seen for the first time.
    pub(crate) fn open(&mut self, now: Steady, deadline: Option<Steady>, seen: Seen, deeds: &mut Vec<Deed>) {
        let mine = seen.names(&self.settings.me);
        let late = seen.status == Status::Started;
        let rule = self.settings.rule(&seen).filter(|_| mine);
        let treatment = rule.map_or(Treatment::default(), |rule| rule.treatment);
        let note = |what| Deed::Note(Note { seen: seen.clone(), what });
        deeds.push(note(What::Seen { mine }));
        if mine && !seen.has_known_type() {
            deeds.push(note(What::UnknownType));
        }
        match treatment {
            Treatment::Ignore => deeds.push(note(What::Ignored)),
            Treatment::Prepare if mine && late => deeds.push(note(What::TooLate)),
            Treatment::Prepare | Treatment::ApproveAtOnce => {}
        }
        let case = Case {
            treatment,
            approval: rule.and_then(|rule| rule.approval).unwrap_or(self.settings.approval),
            on_failure: rule.and_then(|rule| rule.on_failure).unwrap_or(self.settings.on_failure),
            late,
            begun: false,
            consent: Consent::None,
            gone: None,
            runs: BTreeMap::new(),
            live: Live { confirmed: true, since: now, deadline, ..Live::default() },
            seen,
        };
        self.memory.cases.push(case);
    }

    /// An event has left the document.
    ///
    /// Last seen scheduled, approved by nobody that is known, and before its time: it was cancelled. Otherwise it happened.
    fn miss(&mut self, date: Timestamp, index: usize, deeds: &mut Vec<Deed>) {
        let case = &mut self.memory.cases[index];
        let is_early = case.seen.not_before.is_some_and(|at| date < at.0);
        let unapproved = case.consent == Consent::None;
        let gone = match case.seen.status {
            Status::Scheduled if unapproved && is_early => Gone::Cancelled,
            Status::Scheduled | Status::Started => Gone::Completed,
        };
        case.gone = Some(gone);
        for owed in self.memory.owed.values_mut().filter(|owed| owed.seen.id == case.seen.id) {
            owed.gone = Some(gone);
        }
        let what = match gone {
            Gone::Completed => What::Completed,
            Gone::Cancelled => What::Cancelled,
        };
        deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
        self.try_again();
    }

    /// A hook of a case has ended.
    fn conclude(&mut self, now: Steady, task: &Task, ending: &Ending, deeds: &mut Vec<Deed>) {
        let retries = self.settings.hook(&task.hook).map_or(0, |hook| hook.retries);
        if let (Some(memory), Some(owed)) = (&ending.memory, self.memory.owed.get_mut(&task.hook)) {
            owed.memory = Some(memory.clone());
        }
        let Some(case) = self.memory.cases.iter_mut().find(|case| case.seen.id == task.event) else { return };
        let is_over = case.gone.is_some() && matches!(task.phase, Phase::Scheduled | Phase::Started);
        let deadline = case.live.deadline;
        let Some(progress) = case.progress_mut(task.phase, &task.hook) else { return };
        progress.runs = false;
        let again = now.plus(RETRY_PAUSE);
        let has_time = task.phase != Phase::Scheduled || deadline.is_none_or(|deadline| again < deadline);
        match &ending.result {
            Ok(()) => progress.state = State::Done,
            Err(_) if progress.stopped => progress.state = State::Skipped,
            Err(_) if progress.attempts <= retries && has_time && !is_over => progress.again_at = Some(again),
            Err(why) => {
                progress.state = State::Failed(why.clone());
                let what = What::HookFailed { phase: task.phase, hook: task.hook.clone(), why: why.clone() };
                deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
            }
        }
    }

    /// Whether nothing keeps this machine drained.
    pub(crate) fn is_quiet(&self) -> bool {
        let pending = |case: &Case| case.begun || (case.gone.is_none() && self.is_to_prepare(case));
        self.has_seen && !self.memory.cases.iter().any(pending)
    }

    fn is_to_prepare(&self, case: &Case) -> bool {
        case.treatment == Treatment::Prepare && case.seen.names(&self.settings.me)
    }

    fn stage(&self, case: &Case) -> Stage {
        match case.treatment {
            Treatment::Ignore => return Stage::Idle,
            Treatment::ApproveAtOnce => return Stage::Ready,
            Treatment::Prepare => {}
        }
        let hooks = self.settings.hooks_of(Phase::Scheduled, &case.seen);
        let ended = hooks.iter().all(|hook| {
            case.progress(Phase::Scheduled, &hook.name).is_some_and(|progress| {
                !progress.runs && progress.again_at.is_none() && progress.state != State::Begun
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
