//! What a machine has seen and was answered, and what follows from that for everything it sees later.
//!
//! The books outlive the server: whatever they say must hold before a kill, after it, and over it.

use std::collections::BTreeMap;

use forewarn_imds::parse_date;
use forewarn_lifecycle::Timestamp;
use serde_json::Value;

/// The shortest notice of what clients here ask for.
const NOTICE_MILLIS_MIN: i64 = 10 * 60 * 1_000;

/// The books of one machine, which is a tenant of its own.
#[derive(Default)]
pub struct Books {
    machine: &'static str,
    /// Every document that was read, byte for byte.
    documents: BTreeMap<u64, String>,
    incarnation: u64,
    events: BTreeMap<String, Known>,
    /// The latest that the clock has shown.
    clock: i64,
    pub cancels: Tally,
    /// The number in a tag of the machine, which only grows.
    pub tag: Tally,
    /// Hosts that joined, and were answered for.
    pub hosts: Vec<String>,
}

/// How often something was asked for, and how often it was answered: what was asked for last may have happened or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub asked: u64,
    pub answered: u64,
}

impl Tally {
    pub fn allows(self, seen: u64) -> bool {
        (self.answered..=self.asked).contains(&seen)
    }
}

/// What is known of an event.
struct Known {
    not_before_millis: i64,
    stage: Stage,
    approval: RequestState,
    cancel: RequestState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Scheduled,
    Started,
    Gone,
}

/// How far somebody got with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    No,
    /// It was sent, and nobody knows what became of it.
    Sent,
    Answered,
}

impl Books {
    pub fn of(machine: &'static str) -> Self {
        Self { machine, ..Self::default() }
    }

    /// The clock shows that.
    pub fn see_clock(&mut self, millis: i64) {
        assert!(millis >= self.clock, "the clock has gone back: {millis} after {}", self.clock);
        self.clock = millis;
    }

    /// An event was promised.
    pub fn promise(&mut self, id: &str, not_before_millis: i64) {
        self.know(id, not_before_millis);
    }

    fn know(&mut self, id: &str, not_before_millis: i64) -> &mut Known {
        let known = Known {
            not_before_millis,
            stage: Stage::Scheduled,
            approval: RequestState::No,
            cancel: RequestState::No,
        };
        self.events.entry(id.to_owned()).or_insert(known)
    }

    pub fn approval(&mut self, id: &str, said: RequestState) {
        self.known(id).approval = said;
    }

    pub fn cancel(&mut self, id: &str, said: RequestState) {
        self.known(id).cancel = said;
    }

    fn known(&mut self, id: &str) -> &mut Known {
        self.events.get_mut(id).expect("an event that was seen")
    }

    /// Events that wait, and that nobody has tried to cancel.
    pub fn waiting(&self) -> Vec<String> {
        let waiting = self.events.iter().filter(|(_, known)| {
            known.stage == Stage::Scheduled
                && known.cancel == RequestState::No
                && known.approval == RequestState::No
        });
        waiting.map(|(id, _)| id.clone()).collect()
    }

    /// A document was read; later, the clock showed that.
    pub fn see(&mut self, body: &str, clock_millis: i64) {
        let machine = self.machine;
        let document: Value = serde_json::from_str(body).expect("a document is JSON");
        let incarnation = document["DocumentIncarnation"].as_u64().expect("a number");
        assert!(incarnation >= self.incarnation, "{machine}: {incarnation} after {}", self.incarnation);
        self.incarnation = incarnation;
        let same = self.documents.entry(incarnation).or_insert_with(|| body.to_owned());
        assert_eq!(same, body, "{machine}: the same incarnation, another document");
        // What was never promised can only have been announced since the clock was last seen.
        let unpromised = self.clock + NOTICE_MILLIS_MIN;
        self.see_clock(clock_millis);
        let events = document["Events"].as_array().expect("a list");
        let ids: Vec<_> = events.iter().map(|event| event["EventId"].as_str().expect("an id")).collect();
        for (event, id) in events.iter().zip(&ids) {
            let date = event["NotBefore"].as_str().and_then(parse_date);
            let not_before = date.map(Timestamp::millis);
            let stage = if event["EventStatus"] == "Scheduled" { Stage::Scheduled } else { Stage::Started };
            let known = self.know(id, not_before.unwrap_or(unpromised));
            known.check(stage, clock_millis, &format!("{machine}: {id}"));
            if let Some(not_before) = not_before {
                assert_eq!(not_before, known.not_before_millis, "{machine}: {id}: NotBefore has moved");
            }
        }
        for (id, known) in self.events.iter_mut().filter(|(id, _)| !ids.contains(&id.as_str())) {
            known.check(Stage::Gone, clock_millis, &format!("{machine}: {id}"));
        }
    }

    /// Everything is over: whatever was announced was done once, or cancelled.
    pub fn close(&self, machine: &Value) {
        let name = self.machine;
        let unfinished = self.events.values().filter(|known| known.stage != Stage::Gone);
        assert_eq!(unfinished.count(), 0, "{name}: an event never ended");
        let number = |key: &str| machine[key].as_u64().expect("a number");
        let (boots, disk) = (number("boots") - 1, number("disk") - 1);
        // An event that is carried out appears, starts and goes; one that is cancelled appears and goes.
        let cancelled = (self.incarnation - 1).checked_sub(3 * boots).expect("a boot without an event");
        assert_eq!(cancelled % 2, 0, "{name}: {boots} boots until incarnation {}", self.incarnation);
        assert!(self.cancels.allows(cancelled / 2), "{name}: {cancelled} is not {:?}", self.cancels);
        assert!(disk <= boots, "{name}: {disk} new disks, {boots} boots");
    }

    /// How many events were seen from their beginning to their end.
    pub fn events(&self) -> usize {
        self.events.len()
    }
}

impl Known {
    /// Whether it may stand there, if the clock shows at most that.
    fn check(&mut self, stage: Stage, clock_millis: i64, what: &str) {
        assert!(stage >= self.stage, "{what}: {:?}, and then {stage:?}", self.stage);
        let (approval, cancel) = (self.approval, self.cancel);
        let may_start = approval != RequestState::No || clock_millis >= self.not_before_millis;
        match stage {
            Stage::Scheduled => {
                assert!(approval != RequestState::Answered, "{what}: approved, and still Scheduled");
            }
            Stage::Started => assert!(may_start, "{what}: Started too early: at {clock_millis} or before"),
            Stage::Gone => {
                assert!(may_start || cancel != RequestState::No, "{what}: gone, and nobody asked for it");
            }
        }
        let is_cancelled = cancel == RequestState::Answered && stage != Stage::Gone;
        assert!(!is_cancelled, "{what}: cancelled, and {stage:?}");
        self.stage = stage;
    }
}
