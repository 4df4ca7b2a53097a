//! Random requests of a machine and its owner until the server ends, and a record of every promise that the responses made.

mod books;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::operator::{millis, read, value, write};
use crate::{NEWEST, Random, RawResponse, TestServer, approve, ask, get, post};

pub use books::{Books, RequestState, Tally};

pub struct RandomClient {
    machine: &'static str,
    address: String,
    random: Random,
    pub books: Books,
    /// A document after which the clock could not be read.
    unjudged: Option<String>,
}

/// Where a server is.
#[derive(Clone, Copy)]
pub struct Endpoints {
    metadata: SocketAddr,
    api: SocketAddr,
}

impl Endpoints {
    pub fn of(server: &TestServer) -> Self {
        Self { metadata: server.metadata(), api: server.api() }
    }
}

/// What kind of problem it is that nothing can be written.
pub const UNAVAILABLE: io::ErrorKind = io::ErrorKind::ResourceBusy;

fn available(answer: RawResponse) -> io::Result<RawResponse> {
    if answer.status() == 503 { Err(io::Error::new(UNAVAILABLE, answer.body)) } else { Ok(answer) }
}

/// How the clock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// It stands, and clients set it forward.
    Driven,
    Runs,
}

impl RandomClient {
    pub fn new(machine: &'static str, number: usize, seed: u64) -> Self {
        let random = Random::new(seed ^ (number as u64) << 32);
        let address = format!("10.0.0.1{number}");
        Self { machine, address, random, books: Books::of(machine), unjudged: None }
    }

    /// Does one thing after the other, and counts what was answered; ends when the server does, and says how that was.
    pub fn work(&mut self, at: Endpoints, time: Time, answered: &AtomicU64) -> io::Error {
        loop {
            if let Err(problem) = self.look(at).and_then(|()| self.act(at, time)) {
                return problem;
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads the document, and then the clock.
    pub fn look(&mut self, at: Endpoints) -> io::Result<()> {
        if let Some(body) = self.unjudged.take() {
            self.judge(at, body)?;
        }
        let answer = ask(at.metadata, &get(&self.target()))?;
        assert_eq!(answer.status(), 200, "{answer:?}");
        self.judge(at, answer.body)
    }

    fn judge(&mut self, at: Endpoints, body: String) -> io::Result<()> {
        match read(at.api, "/v1/clock").and_then(available) {
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

    fn act(&mut self, at: Endpoints, time: Time) -> io::Result<()> {
        match self.random.below(20) {
            0..6 => self.announce(at),
            6..11 => self.approve(at),
            11..13 => self.cancel(at),
            13..16 => self.tag(at),
            16 => self.admit_host(at),
            17.. if time == Time::Driven => self.drive(at),
            17.. => Ok(()),
        }
    }

    fn command(at: Endpoints, command: &Value) -> io::Result<RawResponse> {
        let answer = available(write(at.api, "/v1/commands", command)?)?;
        assert!(answer.status() < 500, "{command}: {answer:?}");
        Ok(answer)
    }

    /// A second one of the same kind is refused while the first waits.
    fn announce(&mut self, at: Endpoints) -> io::Result<()> {
        let verb = if self.random.below(3) == 0 { "redeploy" } else { "restart" };
        let answer = Self::command(at, &json!({"command": verb, "machine": self.machine}))?;
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
        let chosen = self.random.index(waiting.len());
        (chosen < waiting.len()).then(|| waiting.swap_remove(chosen))
    }

    fn approve(&mut self, at: Endpoints) -> io::Result<()> {
        let Some(id) = self.choose() else { return Ok(()) };
        self.books.approval(&id, RequestState::Sent);
        let answer = available(ask(at.metadata, &post(&self.target(), &approve(&[&id])))?)?;
        match answer.status() {
            200 => self.books.approval(&id, RequestState::Answered),
            // The clock has gone on by more than an hour, and it is forgotten.
            400 => self.books.approval(&id, RequestState::No),
            status => panic!("{status} to an approval: {answer:?}"),
        }
        Ok(())
    }

    fn cancel(&mut self, at: Endpoints) -> io::Result<()> {
        let Some(id) = self.choose() else { return Ok(()) };
        self.books.cancel(&id, RequestState::Sent);
        self.books.cancels.asked += 1;
        let answer = Self::command(at, &json!({"command": "cancel", "event": id}))?;
        if answer.status() == 200 {
            self.books.cancels.answered += 1;
            self.books.cancel(&id, RequestState::Answered);
        } else {
            // It has started.
            self.books.cancels.asked -= 1;
            self.books.cancel(&id, RequestState::No);
        }
        Ok(())
    }

    fn tag(&mut self, at: Endpoints) -> io::Result<()> {
        let next = self.books.tag.asked + 1;
        self.books.tag.asked = next;
        let tags = json!({"written": next.to_string()});
        let command = json!({"command": "describe", "machine": self.machine, "addresses": [self.address], "tags": tags});
        value(&Self::command(at, &command)?);
        self.books.tag.answered = next;
        Ok(())
    }

    fn admit_host(&mut self, at: Endpoints) -> io::Result<()> {
        let name = format!("{}-host-{}", self.machine, self.random.number());
        let answer = Self::command(at, &json!({"command": "admit_host", "name": name}))?;
        value(&answer);
        self.books.hosts.push(name);
        Ok(())
    }

    fn drive(&mut self, at: Endpoints) -> io::Result<()> {
        let by = format!("{}s", 1 + self.random.below(420));
        let answer = available(write(at.api, "/v1/clock", &json!({"clock": "advance", "by": by}))?)?;
        self.books.see_clock(millis(&value(&answer)));
        Ok(())
    }

    /// Everything that was answered is there.
    pub fn check(&mut self, at: Endpoints) {
        self.look(at).expect("a server that has just been started");
        let machine = self.machine(at);
        let tag = machine["tags"]["written"].as_str().and_then(|tag| tag.parse().ok()).expect("a number");
        assert!(self.books.tag.allows(tag), "{}: {tag} is not {:?}", self.machine, self.books.tag);
        assert_eq!(machine["addresses"], json!([self.address]), "{}", self.machine);
        let hosts = value(&read(at.api, "/v1/hosts").unwrap());
        let hosts = hosts["items"].as_array().expect("a list");
        for name in &self.books.hosts {
            assert!(hosts.iter().any(|host| host["name"] == *name), "a host is gone: {name}");
        }
    }

    fn machine(&self, at: Endpoints) -> Value {
        value(&read(at.api, &format!("/v1/machines/{}", self.machine)).unwrap())
    }

    /// Everything is over.
    pub fn close(&mut self, at: Endpoints) {
        self.check(at);
        self.books.close(&self.machine(at));
    }
}
