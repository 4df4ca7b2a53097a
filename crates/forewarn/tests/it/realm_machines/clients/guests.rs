//! Guests: poll one server each, over the network, and approve some of the events that they read.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use forewarn_testkit::Random;
use forewarn_testkit::raw_http::{NEWEST, approve};
use serde_json::Value;

use super::Record;
use super::api::ask_metadata;
use crate::realm_machines::history::{Approval, MissedPoll, SeenEvent, Sighting, Since};
use crate::realm_machines::site::{GUESTS, MachineSite, SPOT};

/// Pause between two polls of all guests.
const PAUSE: Duration = Duration::from_millis(40);

/// A guest approves an event that it reads in one of so many polls.
const APPROVALS: u64 = 25;

/// The status of a document.
const OK: u16 = 200;

pub(super) struct GuestPolls {
    server: usize,
    addresses: Vec<SocketAddr>,
    random: Random,
    record: Record,
    /// For each guest, the time at which its last answered poll was sent, and the document.
    last: Vec<Option<(Since, Document)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Document {
    incarnation: u64,
    events: Vec<SeenEvent>,
}

impl GuestPolls {
    pub(super) fn new(site: &MachineSite, server: usize, random: Random, record: Record) -> Self {
        let addresses = (0..GUESTS.len()).map(|guest| site.machines[server].guest_address(guest)).collect();
        let last = GUESTS.map(|_| None).to_vec();
        Self { server, addresses, random, record, last }
    }

    pub(super) fn run(mut self, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            for guest in 0..GUESTS.len() {
                self.poll(guest);
            }
            thread::sleep(PAUSE);
        }
    }

    fn poll(&mut self, guest: usize) {
        let sent = self.record.now();
        let request = format!(
            "GET {NEWEST} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        );
        let answer = match ask_metadata(self.addresses[guest], &request) {
            Ok(answer) if answer.status == OK => answer,
            Ok(answer) => return self.miss(sent, format!("{answer:?}")),
            Err(error) => return self.miss(sent, error.to_string()),
        };
        let document = parse(&answer.body);
        let previous = self.last[guest].replace((sent, document.clone()));
        if previous.as_ref().is_none_or(|(_, before)| *before != document) {
            let sighting = Sighting {
                server: self.server,
                guest: GUESTS[guest].to_owned(),
                previous_sent: previous.map_or(Duration::ZERO, |(sent, _)| sent),
                answered: self.record.now(),
                incarnation: document.incarnation,
                events: document.events.clone(),
            };
            self.record.write(|history| history.sightings.push(sighting));
        }
        // Spot machines leave it to the end of the notice.
        let event = document.events.iter().find(|event| !event.is_started);
        if let Some(event) = event
            && !SPOT.contains(&GUESTS[guest])
            && self.random.below(APPROVALS) == 0
        {
            self.approve(guest, &event.id);
        }
    }

    fn miss(&self, sent: Since, reason: String) {
        let missed = MissedPoll { server: self.server, sent, reason };
        self.record.write(|history| history.missed_polls.push(missed));
        thread::sleep(PAUSE);
    }

    fn approve(&mut self, guest: usize, event: &str) {
        let body = approve(&[event]);
        let length = body.len();
        let request = format!(
            "POST {NEWEST} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        // The history may be read before the answer comes.
        let approval = Approval { event: event.to_owned(), is_acknowledged: false };
        self.record.write(|history| history.approvals.push(approval));
        if ask_metadata(self.addresses[guest], &request).is_ok_and(|answer| answer.status == OK) {
            let approval = Approval { event: event.to_owned(), is_acknowledged: true };
            self.record.write(|history| history.approvals.push(approval));
        }
    }
}

fn parse(body: &str) -> Document {
    let document: Value = serde_json::from_str(body).expect("a document is JSON");
    let events = document["Events"].as_array().expect("a list").iter();
    let event = |event: &Value| SeenEvent {
        id: event["EventId"].as_str().expect("an id").to_owned(),
        kind: event["EventType"].as_str().expect("a kind").to_owned(),
        is_started: event["EventStatus"] == "Started",
    };
    Document {
        incarnation: document["DocumentIncarnation"].as_u64().expect("a number"),
        events: events.map(event).collect(),
    }
}
