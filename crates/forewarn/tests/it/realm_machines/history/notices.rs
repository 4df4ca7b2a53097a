//! Notices: no event starts before guests could have read it for the whole time, unless one of them approves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{History, LogEntry, Since};

/// The notice of each kind of event.
const NOTICES: [(&str, Duration); 5] = [
    ("Preempt", Duration::from_secs(30)),
    ("Terminate", Duration::from_secs(300)),
    ("Redeploy", Duration::from_secs(600)),
    ("Reboot", Duration::from_secs(900)),
    ("Freeze", Duration::from_secs(900)),
];

/// An event, as guests have seen it.
#[derive(Default)]
struct EventTimes {
    kind: String,
    /// For each server, the time before which it has not shown the event.
    unseen_until: BTreeMap<usize, Since>,
    /// The first time at which an answer has shown it as started.
    started: Option<Since>,
}

pub(super) fn check(history: &History, log: &[LogEntry]) -> Vec<String> {
    let mut found = check_ids(log);
    let (requested, gone) = (requests(history, log), ends(history));
    for (id, event) in events(history) {
        if history.approvals.iter().any(|approval| approval.event == id) {
            continue;
        }
        // An event may start and end between two polls: then its end bounds its start.
        let Some(started) = event.started.or_else(|| gone.get(&id).copied()) else { continue };
        let first_unseen = event.unseen_until.values().min().copied().unwrap_or_default();
        // It cannot be readable before its command was sent.
        let unread = first_unseen.max(requested.get(&id).copied().unwrap_or_default());
        let notice = NOTICES.iter().find(|(kind, _)| *kind == event.kind);
        let Some((_, notice)) = notice else {
            found.push(format!("an event of an unknown kind: {id} {}", event.kind));
            continue;
        };
        if started.saturating_sub(unread) < *notice {
            let given = started.saturating_sub(unread);
            found.push(format!("{} {id} started after at most {given:?} of {notice:?}", event.kind));
        }
    }
    found
}

/// An id is announced once, and starts at most once, after that.
fn check_ids(log: &[LogEntry]) -> Vec<String> {
    let (mut announced, mut started) = (BTreeMap::new(), BTreeMap::new());
    let mut found = Vec::new();
    for entry in log {
        for id in &entry.events {
            match entry.kind.as_str() {
                "announced" if announced.insert(id, entry.number).is_some() => {
                    found.push(format!("announced twice: {id}, entry {}", entry.number));
                }
                "started" if started.insert(id, entry.number).is_some() => {
                    found.push(format!("started twice: {id}, entry {}", entry.number));
                }
                "started" if !announced.contains_key(id) => {
                    found.push(format!("started, and not announced: {id}, entry {}", entry.number));
                }
                _ => {}
            }
        }
    }
    found
}

fn events(history: &History) -> BTreeMap<String, EventTimes> {
    let mut events = BTreeMap::<String, EventTimes>::new();
    for sighting in &history.sightings {
        for seen in &sighting.events {
            let event = events.entry(seen.id.clone()).or_default();
            event.kind.clone_from(&seen.kind);
            event.unseen_until.entry(sighting.server).or_insert(sighting.previous_sent);
            if seen.is_started {
                let first = event.started.get_or_insert(sighting.answered);
                *first = sighting.answered.min(*first);
            }
        }
    }
    events
}

/// The times at which events that were seen are gone again.
fn ends(history: &History) -> BTreeMap<String, Since> {
    let mut shown = BTreeMap::<(usize, &str), Vec<&str>>::new();
    let mut gone = BTreeMap::<String, Since>::new();
    for sighting in &history.sightings {
        let ids: Vec<_> = sighting.events.iter().map(|event| event.id.as_str()).collect();
        let before = shown.insert((sighting.server, &sighting.guest), ids.clone()).unwrap_or_default();
        for id in before.into_iter().filter(|id| !ids.contains(id)) {
            let first = gone.entry(id.to_owned()).or_insert(sighting.answered);
            *first = sighting.answered.min(*first);
        }
    }
    gone
}

/// The time at which the command of each event was sent.
fn requests(history: &History, log: &[LogEntry]) -> BTreeMap<String, Since> {
    let sent: BTreeMap<_, _> = history
        .writes
        .iter()
        .filter_map(|write| Some((write.answer.and_then(|answer| answer.entry)?, write.sent)))
        .collect();
    let announced = log.iter().filter(|entry| entry.kind == "announced");
    let request = |entry: &LogEntry| Some((entry.events.first()?.clone(), *sent.get(&entry.because?)?));
    announced.filter_map(request).collect()
}
