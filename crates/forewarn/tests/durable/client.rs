//! A machine and its owner, who do one thing after the other until nobody answers any more.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::books::{Books, Said};
use crate::harness::{Answer, NEWEST, Server, approve, ask, get, post};
use crate::place::{millis, read, value, write};
use crate::random::Random;

pub(crate) struct Client {
    machine: &'static str,
    address: String,
    random: Random,
    pub(crate) books: Books,
    /// A document after which the clock could not be read.
    unjudged: Option<String>,
}

/// Where a server is.
#[derive(Clone, Copy)]
pub(crate) struct Doors {
    metadata: SocketAddr,
    api: SocketAddr,
}

impl Doors {
    pub(crate) fn of(server: &Server) -> Self {
        Self { metadata: server.metadata(), api: server.api() }
    }
}

/// What kind of problem it is that nothing can be written.
pub(crate) const UNAVAILABLE: io::ErrorKind = io::ErrorKind::ResourceBusy;

fn available(answer: Answer) -> io::Result<Answer> {
    if answer.status() == 503 { Err(io::Error::new(UNAVAILABLE, answer.body)) } else { Ok(answer) }
}

/// How the clock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// It stands, and clients set it forward.
    Driven,
    Runs,
}

impl Client {
    pub(crate) fn new(machine: &'static str, number: usize, seed: u64) -> Self {
        let random = Random::new(seed ^ (number as u64) << 32);
        let address = format!("10.0.0.1{number}");
        Self { machine, address, random, books: Books::of(machine), unjudged: None }
    }

    /// Does one thing after the other, and counts what was answered; ends when the server does, and says how that was.
    pub(crate) fn work(&mut self, doors: Doors, time: Time, answered: &AtomicU64) -> io::Error {
        loop {
            if let Err(problem) = self.look(doors).and_then(|()| self.act(doors, time)) {
                return problem;
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads the document, and then the clock.
    pub(crate) fn look(&mut self, doors: Doors) -> io::Result<()> {
        if let Some(body) = self.unjudged.take() {
            self.judge(doors, body)?;
        }
        let answer = ask(doors.metadata, &get(&self.target()))?;
        assert_eq!(answer.status(), 200, "{answer:?}");
        self.judge(doors, answer.body)
    }

    fn judge(&mut self, doors: Doors, body: String) -> io::Result<()> {
        match read(doors.api, "/v1/clock").and_then(available) {
            Ok(answer) => {
                self.books.see(&body, millis(&value(&answer)));
                Ok(())
            }
            Err(problem) => {
                self.unjudged = Some(body);
                Err(problem)
            }
        }
    }

    fn target(&self) -> String {
        format!("/vm/{}{NEWEST}", self.machine)
    }

    fn act(&mut self, doors: Doors, time: Time) -> io::Result<()> {
        match self.random.below(20) {
            0..6 => self.announce(doors),
            6..11 => self.approve(doors),
            11..13 => self.cancel(doors),
            13..16 => self.tag(doors),
            16 => self.admit_host(doors),
            17.. if time == Time::Driven => self.drive(doors),
            17.. => Ok(()),
        }
    }

    fn command(doors: Doors, command: &Value) -> io::Result<Answer> {
        let answer = available(write(doors.api, "/v1/commands", command)?)?;
        assert!(answer.status() < 500, "{command}: {answer:?}");
        Ok(answer)
    }

    /// A second one of the same kind is refused while the first waits.
    fn announce(&mut self, doors: Doors) -> io::Result<()> {
        let verb = if self.random.below(3) == 0 { "redeploy" } else { "restart" };
        let answer = Self::command(doors, &json!({"command": verb, "machine": self.machine}))?;
        if answer.status() == 200 {
            for event in value(&answer)["events"].as_array().expect("a list") {
                let not_before = json!({"now": event["not_before"]});
                self.books.promise(event["id"].as_str().expect("an id"), millis(&not_before));
            }
        }
        Ok(())
    }

    fn choose(&mut self) -> Option<String> {
        let mut waiting = self.books.waiting();
        let chosen = self.random.below(waiting.len().max(1) as u64);
        let chosen = usize::try_from(chosen).unwrap();
        (chosen < waiting.len()).then(|| waiting.swap_remove(chosen))
    }

    fn approve(&mut self, doors: Doors) -> io::Result<()> {
        let Some(id) = self.choose() else { return Ok(()) };
        self.books.approval(&id, Said::Sent);
        let answer = available(ask(doors.metadata, &post(&self.target(), &approve(&[&id])))?)?;
        match answer.status() {
            200 => self.books.approval(&id, Said::Answered),
            // The clock has gone on by more than an hour, and it is forgotten.
            400 => self.books.approval(&id, Said::No),
            status => panic!("{status} to an approval: {answer:?}"),
        }
        Ok(())
    }

    fn cancel(&mut self, doors: Doors) -> io::Result<()> {
        let Some(id) = self.choose() else { return Ok(()) };
        self.books.cancel(&id, Said::Sent);
        self.books.cancels.asked += 1;
        let answer = Self::command(doors, &json!({"command": "cancel", "event": id}))?;
        if answer.status() == 200 {
            self.books.cancels.answered += 1;
            self.books.cancel(&id, Said::Answered);
        } else {
            // It has started.
            self.books.cancels.asked -= 1;
            self.books.cancel(&id, Said::No);
        }
        Ok(())
    }

    fn tag(&mut self, doors: Doors) -> io::Result<()> {
        let next = self.books.tag.asked + 1;
        self.books.tag.asked = next;
        let tags = json!({"written": next.to_string()});
        let command = json!({"command": "describe", "machine": self.machine, "addresses": [self.address], "tags": tags});
        value(&Self::command(doors, &command)?);
        self.books.tag.answered = next;
        Ok(())
    }

    fn admit_host(&mut self, doors: Doors) -> io::Result<()> {
        let name = format!("{}-host-{}", self.machine, self.random.next());
        let answer = Self::command(doors, &json!({"command": "admit_host", "name": name}))?;
        value(&answer);
        self.books.hosts.push(name);
        Ok(())
    }

    fn drive(&mut self, doors: Doors) -> io::Result<()> {
        let by = format!("{}s", 1 + self.random.below(420));
        let answer = available(write(doors.api, "/v1/clock", &json!({"clock": "advance", "by": by}))?)?;
        self.books.see_clock(millis(&value(&answer)));
        Ok(())
    }

    /// Everything that was answered is there.
    pub(crate) fn check(&mut self, doors: Doors) {
        self.look(doors).expect("a server that has just been started");
        let machine = self.machine(doors);
        let tag = machine["tags"]["written"].as_str().and_then(|tag| tag.parse().ok()).expect("a number");
        assert!(self.books.tag.allows(tag), "{}: {tag} is not {:?}", self.machine, self.books.tag);
        assert_eq!(machine["addresses"], json!([self.address]), "{}", self.machine);
        let hosts = value(&read(doors.api, "/v1/hosts").unwrap());
        let hosts = hosts["items"].as_array().expect("a list");
        for name in &self.books.hosts {
            assert!(hosts.iter().any(|host| host["name"] == *name), "a host is gone: {name}");
        }
    }

    fn machine(&self, doors: Doors) -> Value {
        value(&read(doors.api, &format!("/v1/machines/{}", self.machine)).unwrap())
    }

    /// Everything is over.
    pub(crate) fn close(&mut self, doors: Doors) {
        self.check(doors);
        self.books.close(&self.machine(doors));
    }
}
