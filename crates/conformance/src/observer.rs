//! The observer: polls the document, remembers the events, and judges how they change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_imds::{Edition, parse_date, parse_iso};
use forewarn_types::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::catalogue as c;
use crate::documents::{check_document, incarnation};
use crate::endpoint::{Endpoint, events_of, text};
use crate::report::Results;

/// Time between two polls: a service may limit a machine to five requests per second.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Polls the endpoint and remembers what it has shown.
pub(crate) struct Observer<'a> {
    endpoint: &'a Endpoint,
    last: Option<Poll>,
    /// Events that the judge has approved.
    approved: BTreeSet<String>,
    /// Events that commands of the judge have made, oldest first.
    pub(crate) made: Vec<String>,
    /// The first `NotBefore` of each event.
    not_before: BTreeMap<String, String>,
    has_watched_unapproved: bool,
}

/// One poll.
#[derive(Clone)]
struct Poll {
    body: Vec<u8>,
    incarnation: Option<u64>,
    date: Option<Timestamp>,
    events: Vec<Value>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            last: None,
            approved: BTreeSet::new(),
            made: Vec::new(),
            not_before: BTreeMap::new(),
            has_watched_unapproved: false,
        }
    }

    pub(crate) fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }

    /// The events of the last poll.
    pub(crate) fn events(&self) -> &[Value] {
        self.last.as_ref().map_or(&[], |poll| &poll.events)
    }

    /// The time of the service at the last poll.
    pub(crate) fn date(&self) -> Option<Timestamp> {
        self.last.as_ref().and_then(|poll| poll.date)
    }

    /// The status of an event at the last poll; `None` if it was gone.
    pub(crate) fn status(&self, id: &str) -> Option<&str> {
        self.events()
            .iter()
            .find(|event| text(event, "EventId") == id)
            .map(|event| text(event, "EventStatus"))
    }

    /// The events of the judge's commands that are scheduled and not approved.
    pub(crate) fn approvable(&self) -> Vec<String> {
        let waits = |id: &&String| self.status(id) == Some("Scheduled") && !self.approved.contains(*id);
        self.made.iter().filter(waits).cloned().collect()
    }

    /// Remembers that the judge approves events: they may start from now on.
    pub(crate) fn approve(&mut self, ids: &[String]) {
        self.approved.extend(ids.iter().cloned());
    }

    /// Polls once, and judges the document and what has changed.
    pub(crate) async fn observe(&mut self, results: &mut Results) {
        let Ok(fetched) = self.endpoint.document(Edition::newest()).await else { return };
        if fetched.document.is_null() {
            // The service is being enabled.
            return;
        }
        check_document(&fetched, results);
        let poll = Poll {
            body: fetched.response.body.to_vec(),
            incarnation: incarnation(&fetched.document),
            date: fetched.response.header("date").and_then(parse_date),
            events: events_of(&fetched.document).to_vec(),
        };
        if let Some(last) = self.last.take() {
            self.compare(&last, &poll, results);
        }
        for event in &poll.events {
            let first = self.not_before.entry(text(event, "EventId").to_owned());
            let first = first.or_insert_with(|| text(event, "NotBefore").to_owned());
            if text(event, "EventStatus") == "Scheduled" {
                let now = text(event, "NotBefore");
                let moved = || format!("`NotBefore` was {first:?}, and is {now:?}");
                results.judge(&c::NOT_BEFORE_FIXED, (*first == now).then_some(()).ok_or_else(moved));
            }
        }
        self.last = Some(poll);
    }

    /// Polls until something holds, at most for that time. Returns whether it holds.
    pub(crate) async fn until(
        &mut self,
        patience: Duration,
        results: &mut Results,
        holds: impl Fn(&Self) -> bool,
    ) -> bool {
        let end = Instant::now() + patience;
        loop {
            self.observe(results).await;
            if holds(self) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Watches for some time.
    pub(crate) async fn watch(&mut self, time: Duration, results: &mut Results) {
        self.has_watched_unapproved =
            self.events().iter().any(|event| text(event, "EventStatus") == "Scheduled");
        self.until(time, results, |_| false).await;
    }

    /// Judges what only the whole observation shows.
    pub(crate) fn judge(&self, results: &mut Results) {
        if self.has_watched_unapproved {
            results.judge(&c::NO_EARLY_START, Ok(()));
        }
    }

    fn compare(&self, last: &Poll, poll: &Poll, results: &mut Results) {
        if last.incarnation.is_some() && last.incarnation == poll.incarnation {
            let same = (last.body == poll.body).then_some(());
            let differ = || "the document has changed, and its number has not".to_owned();
            results.judge(&c::INCARNATION_UNCHANGED, same.ok_or_else(differ));
        }
        check_ids(last, poll, results);
        self.check_starts(last, poll, results);
        check_growth(last, poll, results);
    }

    /// An event that starts must have been approved, or its time must have come.
    fn check_starts(&self, last: &Poll, poll: &Poll, results: &mut Results) {
        let now = poll.date.or(last.date);
        for event in &last.events {
            let id = text(event, "EventId");
            let after = poll.find(id).or_else(|| renamed(event, last, poll));
            let starts = after.is_some_and(|after| text(after, "EventStatus") == "Started");
            if text(event, "EventStatus") != "Scheduled" || !starts || self.approved.contains(id) {
                continue;
            }
            let due = parse_time(text(event, "NotBefore"));
            let early = now.zip(due).is_some_and(|(now, due)| now < due);
            let why = || format!("{id} started before {}", text(event, "NotBefore"));
            results.judge(&c::NO_EARLY_START, (!early).then_some(()).ok_or_else(why));
        }
    }
}

/// A time in the right form, or in the form of early documents.
fn parse_time(text: &str) -> Option<Timestamp> {
    parse_date(text).or_else(|| parse_iso(text))
}

impl Poll {
    fn find(&self, id: &str) -> Option<&Value> {
        self.events.iter().find(|event| text(event, "EventId") == id)
    }
}

fn check_ids(last: &Poll, poll: &Poll, results: &mut Results) {
    for event in &last.events {
        let renamed = renamed(event, last, poll);
        let why = |twin| format!("{} has become {}", text(event, "EventId"), text(twin, "EventId"));
        results.judge(&c::EVENT_ID_STABLE, renamed.map_or(Ok(()), |twin| Err(why(twin))));
    }
}

/// The same event with another id: it looks like one that is gone, and a new one.
fn renamed<'a>(event: &Value, last: &Poll, poll: &'a Poll) -> Option<&'a Value> {
    if poll.find(text(event, "EventId")).is_some() {
        return None;
    }
    let is_same = |other: &Value, member: &str| other.get(member) == event.get(member);
    poll.events.iter().find(|other| {
        let unchanged = is_same(other, "EventStatus") && is_same(other, "NotBefore");
        let starts = text(event, "EventStatus") == "Scheduled" && text(other, "EventStatus") == "Started";
        let is_new = last.find(text(other, "EventId")).is_none();
        is_new && is_same(other, "EventType") && is_same(other, "Resources") && (unchanged || starts)
    })
}

/// The number grows by one for each event that appears, starts or ends. Between two polls, an event may have started and
/// ended, or appeared and started.
fn check_growth(last: &Poll, poll: &Poll, results: &mut Results) {
    let (Some(before), Some(after)) = (last.incarnation, poll.incarnation) else { return };
    let status = |poll: &Poll, id: &str| poll.find(id).map(|event| text(event, "EventStatus").to_owned());
    let ids = last.events.iter().chain(&poll.events).map(|event| text(event, "EventId"));
    let ids: BTreeSet<_> = ids.collect();
    let (mut least, mut most) = (0, 0);
    for id in ids {
        let (seen, unseen) = match (status(last, id).as_deref(), status(poll, id).as_deref()) {
            (None, Some("Started")) | (Some("Scheduled"), None) => (1, 1),
            (None, Some(_)) | (Some(_), None) => (1, 0),
            (Some(old), Some(new)) if old != new => (1, 0),
            (Some(_), Some(_)) | (None, None) => (0, 0),
        };
        least += seen;
        most += seen + unseen;
    }
    if most == 0 {
        return;
    }
    let grown = after.checked_sub(before);
    let right = grown.is_some_and(|grown| (least..=most).contains(&grown));
    let why = || format!("{before} became {after}, and {least} events appeared, started or ended");
    results.judge(&c::INCARNATION_GROWS, right.then_some(()).ok_or_else(why));
}
