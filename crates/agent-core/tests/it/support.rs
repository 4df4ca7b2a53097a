//! A machine under watch: documents are written in a line, deeds are read in a line.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_agent_core::{
    Approval, ApprovalObstacle, ApprovalResult, Condition, Effect, EventLogKind, Failure, Hook, HookOutcome,
    Memory, Observation, PeerEventStatus, PeerReport, PeerState, PeerStatus, Peers, Phase, Run, Settings,
    Silence, Stage, Task, Watcher,
};
use forewarn_imds::{Edition, Reading, print_date, read_document};
use forewarn_types::{EventId, Steady, Timestamp};
use serde_json::{Value, json};

/// What the service's clock shows at the beginning.
const START: i64 = 1_767_225_600_000;

/// The machine under watch.
pub(crate) const ME: &str = "web_0";

/// A watcher, a clock, and what it has been told to do and has not done.
pub(crate) struct Machine {
    pub(crate) watcher: Watcher,
    now: u64,
    incarnation: u64,
    runs: Vec<Run>,
    /// Ids of events that it was told to approve.
    pub(crate) approvals: Vec<EventId>,
    /// All that was said of events, in short.
    pub(crate) notes: Vec<String>,
    /// All hooks that were started, in short: `scheduled drain 1`.
    pub(crate) log: Vec<String>,
    pub(crate) edition: Edition,
    /// Whether hooks end as soon as they are told to.
    pub(crate) heeds_stops: bool,
}

/// The id that tests call by a number.
pub(crate) fn id(number: u8) -> EventId {
    EventId::from_bytes([number; 16])
}

pub(crate) fn settings() -> Settings {
    Settings {
        me: ME.to_owned(),
        hooks: Vec::new(),
        rules: Vec::new(),
        approval: Approval::Alone,
        on_failure: Failure::Hold,
        spare: Duration::from_secs(2),
        peers: Peers {
            silent_after: Duration::from_secs(10),
            silence: Silence::Wait,
            at_once: None,
            reserve: Duration::from_secs(300),
        },
    }
}

pub(crate) fn hook(name: &str, phase: Phase) -> Hook {
    Hook {
        name: name.to_owned(),
        phase,
        when: Condition::default(),
        order: 50,
        limit: Duration::from_secs(60),
        retries: 0,
        undoes: false,
        even_late: false,
    }
}

/// A hook that gets the machine ready, and back.
pub(crate) fn drain() -> Hook {
    Hook { undoes: true, ..hook("drain", Phase::Scheduled) }
}

/// An event of a document. The time is in seconds after the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Event(pub(crate) Value);

impl Event {
    pub(crate) fn new(number: u8, kind: &str, resources: &[&str], not_before: u64) -> Self {
        let date = print_date(Timestamp::from_millis(START).plus(Duration::from_secs(not_before)));
        Self(json!({
            "EventId": id(number).to_string(), "EventStatus": "Scheduled", "EventType": kind,
            "ResourceType": "VirtualMachine", "Resources": resources, "NotBefore": date.to_string(),
            "Description": "", "EventSource": "Platform", "DurationInSeconds": -1,
        }))
    }

    /// A reboot of this machine alone, fifteen minutes from the beginning.
    pub(crate) fn reboot(number: u8) -> Self {
        Self::new(number, "Reboot", &[ME], 900)
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0[key] = value.into();
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0.as_object_mut().unwrap().remove(key);
        self
    }

    pub(crate) fn started(self) -> Self {
        self.with("EventStatus", "Started").with("NotBefore", "")
    }
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with_memory(settings, Memory::default())
    }

    pub(crate) fn with_memory(settings: Settings, memory: Memory) -> Self {
        Self {
            watcher: Watcher::new(settings, memory),
            now: 0,
            incarnation: 1,
            runs: Vec::new(),
            approvals: Vec::new(),
            notes: Vec::new(),
            log: Vec::new(),
            edition: Edition::newest(),
            heeds_stops: true,
        }
    }

    /// A machine with that one hook.
    pub(crate) fn with_hooks(hooks: &[Hook]) -> Self {
        Self::new(Settings { hooks: hooks.to_vec(), ..settings() })
    }

    /// The agent ends as it is, and another goes on with what was kept, that much later.
    pub(crate) fn restart(self, seconds: u64) -> Self {
        let kept = serde_json::to_string(self.watcher.memory()).unwrap();
        let memory = serde_json::from_str(&kept).expect("what was kept can be read");
        let mut next = Self::with_memory(self.watcher.settings().clone(), memory);
        next.heeds_stops = self.heeds_stops;
        next.now = self.now + seconds * 1_000;
        next
    }

    fn steady(&self) -> Steady {
        Steady::from_millis(self.now)
    }

    fn date(&self) -> Timestamp {
        Timestamp::from_millis(START).plus(Duration::from_millis(self.now))
    }

    pub(crate) fn observe(&mut self, events: &[Event]) {
        self.incarnation += 1;
        let events: Vec<_> = events.iter().map(|event| event.0.clone()).collect();
        let body = json!({ "DocumentIncarnation": self.incarnation, "Events": events }).to_string();
        let Ok(Reading::Document(document)) = read_document(body.as_bytes()) else { panic!("{body}") };
        let observation = Observation { document: &document, edition: self.edition, date: self.date() };
        let effects = self.watcher.observe(self.steady(), observation);
        self.take(effects);
    }

    /// Time passes, second by second, as on a machine that polls.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1_000;
            let effects = self.watcher.on_clock(self.steady(), self.date());
            self.take(effects);
            let effects = self.watcher.tick(self.steady());
            self.take(effects);
        }
    }

    /// The service's clock goes on by itself, and this machine's does not notice.
    pub(crate) fn left(&self, run: &Run) -> u64 {
        run.until.since(self.steady()).as_secs()
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Run(run) => {
                    let Task { phase, hook, .. } = &run.task;
                    self.log.push(format!("{} {hook} {}", phase.as_str(), run.attempt));
                    self.runs.push(run);
                }
                Effect::Stop(task) => {
                    self.log.push(format!("stop {}", task.hook));
                    if !self.heeds_stops {
                        continue;
                    }
                    self.end_task(&task, Err("it was stopped".to_owned()), None);
                }
                Effect::Approve(event) => self.approvals.push(event),
                Effect::Log(note) => self.notes.push(short(&note.kind)),
                Effect::Skip(events) => {
                    self.notes.extend(events.iter().map(|event| format!("skipped: {}", event.error)));
                }
            }
        }
    }

    /// Hooks that run.
    pub(crate) fn running(&self) -> Vec<String> {
        self.runs.iter().map(|run| format!("{} {}", run.task.phase.as_str(), run.task.hook)).collect()
    }

    pub(crate) fn run(&self, hook: &str) -> &Run {
        self.runs
            .iter()
            .find(|run| run.task.hook == hook)
            .unwrap_or_else(|| panic!("it does not run: {hook}"))
    }

    /// A hook that runs ends well.
    pub(crate) fn done(&mut self, hook: &str) {
        let task = self.run(hook).task.clone();
        self.end_task(&task, Ok(()), None);
    }

    /// A hook that runs ends well, and remembers something.
    pub(crate) fn done_with(&mut self, hook: &str, memory: Value) {
        let task = self.run(hook).task.clone();
        self.end_task(&task, Ok(()), Some(memory));
    }

    pub(crate) fn fail(&mut self, hook: &str) {
        let task = self.run(hook).task.clone();
        self.end_task(&task, Err("it failed".to_owned()), None);
    }

    fn end_task(&mut self, task: &Task, result: Result<(), String>, memory: Option<Value>) {
        self.runs.retain(|run| run.task != *task);
        let effects = self.watcher.on_hook_result(self.steady(), task, &HookOutcome { result, memory });
        self.take(effects);
    }

    /// Whatever runs ends well, until nothing does.
    pub(crate) fn settle(&mut self) {
        while let Some(run) = self.runs.first() {
            let task = run.task.clone();
            self.end_task(&task, Ok(()), None);
        }
    }

    /// Somebody has failed hooks run again: those of an event, or all. Returns them in short.
    pub(crate) fn retry(&mut self, event: Option<u8>) -> Vec<String> {
        let (tasks, effects) = self.watcher.retry(self.steady(), event.map(id));
        self.take(effects);
        tasks.iter().map(|task| format!("{} {}", task.phase.as_str(), task.hook)).collect()
    }

    /// Why the first event is not approved, in short.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let (case, _) = self.watcher.cases().next()?;
        self.watcher.obstacle(self.steady(), case).as_ref().map(reason)
    }

    pub(crate) fn answer(&mut self, number: u8, answer: ApprovalResult) {
        let effects = self.watcher.on_approval_result(self.steady(), id(number), answer);
        self.take(effects);
    }

    /// A round of peers: each with its name and how far it has come with events.
    pub(crate) fn hear(&mut self, words: &[(&str, u8, Stage)]) {
        let word = |(name, number, stage): &(&str, u8, Stage)| PeerStatus {
            name: (*name).to_owned(),
            events: BTreeMap::from([(
                id(*number).to_string(),
                PeerEventStatus { stage: *stage, approved: false },
            )]),
        };
        self.hear_words(words.iter().map(word).collect());
    }

    pub(crate) fn hear_words(&mut self, words: Vec<PeerStatus>) {
        for word in words {
            self.hear_report(PeerReport::Status(word));
        }
        let effects = self.watcher.on_round_end(self.steady(), self.steady());
        self.take(effects);
    }

    pub(crate) fn hear_report(&mut self, report: PeerReport) {
        let effects = self.watcher.on_peer_report(self.steady(), report);
        self.take(effects);
    }
}

fn reason(obstacle: &ApprovalObstacle) -> String {
    match obstacle {
        ApprovalObstacle::HooksFailed => "hooks failed".to_owned(),
        ApprovalObstacle::NeverApproves => "never".to_owned(),
        ApprovalObstacle::OtherMachines => "other machines".to_owned(),
        ApprovalObstacle::UnknownType => "unknown type".to_owned(),
        ApprovalObstacle::Malformed => "malformed".to_owned(),
        ApprovalObstacle::Leader(name) => format!("{name} leads"),
        ApprovalObstacle::Peers(peers) => {
            let state = |state: &PeerState| match state {
                PeerState::Silent => "silent".to_owned(),
                PeerState::Unknown => "unknown".to_owned(),
                PeerState::Stage(stage) => format!("{stage:?}").to_lowercase(),
            };
            let peers = peers.iter().map(|peer| {
                let error = peer.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                format!("{} {}{error}", peer.name, state(&peer.state))
            });
            peers.collect::<Vec<_>>().join(", ")
        }
    }
}

fn short(kind: &EventLogKind) -> String {
    match kind {
        EventLogKind::Observed { mine: true } => "seen".to_owned(),
        EventLogKind::Observed { mine: false } => "seen of others".to_owned(),
        EventLogKind::Ignored => "ignored".to_owned(),
        EventLogKind::UnknownType => "unknown type".to_owned(),
        EventLogKind::TooLate => "too late".to_owned(),
        EventLogKind::WaitsForTurn { behind } if behind.is_empty() => "asks for its turn".to_owned(),
        EventLogKind::WaitsForTurn { behind } => format!("waits for its turn behind {}", behind.join(", ")),
        EventLogKind::Preparing => "preparing".to_owned(),
        EventLogKind::HookFailed { hook, reason, .. } => format!("{hook} failed: {reason}"),
        EventLogKind::Ready => "ready".to_owned(),
        EventLogKind::Held => "held".to_owned(),
        EventLogKind::NotApproving { obstacle } => format!("not approving: {}", reason(obstacle)),
        EventLogKind::Approving { without } if without.is_empty() => "approving".to_owned(),
        EventLogKind::Approving { without } => format!("approving without {}", without.join(", ")),
        EventLogKind::Approved => "approved".to_owned(),
        EventLogKind::Unapproved { reason } => format!("not approved: {reason}"),
        EventLogKind::Started => "started".to_owned(),
        EventLogKind::Completed => "completed".to_owned(),
        EventLogKind::Cancelled => "cancelled".to_owned(),
        EventLogKind::Undoing => "undoing".to_owned(),
        EventLogKind::Undone => "undone".to_owned(),
        EventLogKind::UndoFailed { hook, reason } => format!("{hook} not undone: {reason}"),
    }
}
