//! A running server as the stage of a story.
//!
//! What operators do goes through the operator API, what machines do through the metadata endpoint, and the clock is
//! driven from one change of a document to the next.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use forewarn_control::{
    ClockOrder, ClockView, HostView, MachineView, NamedCommand, Outcome, RolloutView, ServerView, TenantView,
};
use forewarn_http_client::{Bytes, Method};
use forewarn_imds::{BadStartRequest, Edition, Problem, render_start_requests};
use forewarn_lifecycle::{EventId, Refusal, Timestamp};
use forewarn_story::{Stage, Undone};
use forewarn_types::Span;

use crate::client::{Client, Refused};

/// A server on which nothing has happened yet.
pub(super) struct Live {
    api: Client,
    metadata: Client,
    beginning: Timestamp,
    now: Timestamp,
}

/// How to start a server that can be a stage.
const HINT: &str = "hint: forewarn dev --fleet none --clock frozen --clock-start 2026-01-01T00:00:00Z";

impl Live {
    /// The server at that address, if a story can be played there.
    pub(super) fn new(url: &str) -> Result<Self> {
        let api = Client::new(url)?;
        let clock: ClockView = api.get("/v1/clock")?;
        ensure!(
            clock.kind == "virtual",
            "a live story needs a virtual clock, and this one is real\n  {HINT}"
        );
        ensure!(clock.speed == 0, "a live story needs a clock that stands still\n  {HINT}");
        let beginning = clock.now.0;
        ensure!(
            beginning.rounded_up() == beginning,
            "a live story begins at a whole second: {}\n  {HINT}",
            clock.now
        );
        let hosts: Vec<HostView> = api.pages("/v1/hosts")?;
        let tenants: Vec<TenantView> = api.pages("/v1/tenants")?;
        if !(hosts.is_empty() && tenants.is_empty()) {
            bail!("a live story brings its own fleet, and this server has one\n  {HINT}");
        }
        let server: ServerView = api.get("/v1/server")?;
        ensure!(server.prefix, "a live story speaks for machines, and this server does not let it\n  {HINT}");
        let metadata = server.metadata.first().context("the server has no metadata endpoint")?;
        Ok(Self { metadata: Client::new(metadata)?, api, beginning, now: beginning })
    }

    /// What a machine is answered; nothing, where it may go on.
    fn ask(&self, machine: &MachineView, method: Method, body: String) -> Result<Option<Bytes>, Undone> {
        let MachineView { tenant, name, .. } = machine;
        let edition = Edition::newest().as_str();
        let path = format!("/vm/{tenant}/{name}/metadata/scheduledevents?api-version={edition}");
        let answer = self.metadata.send(method, &path, &[("Metadata", "true")], Bytes::from(body));
        let (status, body) = answer.map_err(undone)?;
        Ok((!(200..300).contains(&status)).then_some(body))
    }

    fn list<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Undone> {
        self.api.pages(path).map_err(undone)
    }
}

impl Stage for Live {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), Undone> {
        let Outcome { .. } = self.api.post("/v1/commands", command).map_err(undone)?;
        Ok(())
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), Undone> {
        match self.ask(machine, Method::GET, String::new())? {
            None => Ok(()),
            Some(body) => Err(Undone::Broken(String::from_utf8_lossy(&body).into_owned())),
        }
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), Undone> {
        match self.ask(machine, Method::POST, render_start_requests(events))? {
            None => Ok(()),
            Some(body) => Err(refused_approval(&body)),
        }
    }

    fn beginning(&self) -> Timestamp {
        self.beginning
    }

    fn elapsed(&self) -> Duration {
        self.now.since(self.beginning)
    }

    fn run_on(&mut self, end: Duration) -> Result<(), Undone> {
        let left = end.saturating_sub(self.elapsed());
        if left > Duration::ZERO {
            let order = ClockOrder::Next { within: Some(Span(left)) };
            let clock: ClockView = self.api.post("/v1/clock", &order).map_err(undone)?;
            if clock.now.0 <= self.now {
                return Err(Undone::Broken(format!("the clock of the server stands still: {}", clock.now)));
            }
            self.now = clock.now.0;
        }
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<TenantView>, Undone> {
        self.list("/v1/tenants")
    }

    fn machines(&self) -> Result<Vec<MachineView>, Undone> {
        self.list("/v1/machines")
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, Undone> {
        let mut rollouts: Vec<RolloutView> = self.list("/v1/rollouts?ended=true")?;
        rollouts.sort_by_key(|rollout| rollout.id);
        Ok(rollouts)
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, Undone> {
        let edition = Edition::newest().as_str();
        let path = format!("/v1/tenants/{tenant}/document?api-version={edition}");
        let (status, body) = self.api.send(Method::GET, &path, &[], Bytes::new()).map_err(undone)?;
        match status {
            200 => Ok(body.into()),
            _ => Err(Undone::Broken(format!("no document for {tenant}: the server answers {status}"))),
        }
    }
}

/// What a server says no to is sorted by its status: 409 is the rules, 400 and 404 are about what was named, and so is a name
/// that is not enough.
fn undone(problem: anyhow::Error) -> Undone {
    match problem.downcast() {
        Ok(Refused { kind, detail, .. }) if kind == "/problems/ambiguous" => Undone::Mistaken(detail),
        Ok(Refused { status: 409, detail, .. }) => Undone::Refused(detail),
        Ok(Refused { status: 400 | 404, detail, .. }) => Undone::Mistaken(detail),
        Ok(Refused { detail, .. }) => Undone::Broken(detail),
        Err(problem) => Undone::Broken(format!("{problem:#}")),
    }
}

/// The metadata endpoint has words of its own for what the rules refuse; a transcript has those of the rules.
fn refused_approval(body: &[u8]) -> Undone {
    let told = |problem: Problem| body == problem.body().as_bytes();
    if told(Problem::UnknownEvent) {
        Undone::Refused(Refusal::UnknownEvent.to_string())
    } else if told(BadStartRequest::StartRequestsEmpty.into()) {
        Undone::Refused(Refusal::NoEvents.to_string())
    } else {
        Undone::Broken(String::from_utf8_lossy(body).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_words_of_the_rules() {
        let refused = |problem: Problem| refused_approval(problem.body().as_bytes());
        let unknown = "unknown event id among the start requests".to_owned();
        assert_eq!(refused(Problem::UnknownEvent), Undone::Refused(unknown));
        let none = BadStartRequest::StartRequestsEmpty.into();
        assert_eq!(refused(none), Undone::Refused("no event id given".to_owned()));
        assert!(matches!(refused(Problem::NotFound), Undone::Broken(_)));
    }

    #[test]
    fn what_a_server_says_no_to_is_sorted_by_its_status() {
        let refused = |status, kind: &str| {
            undone(Refused { status, kind: kind.to_owned(), detail: "so".to_owned(), pointer: None }.into())
        };
        let sorted = |status| refused(status, "");
        assert_eq!(sorted(409), Undone::Refused("so".to_owned()));
        assert_eq!(sorted(400), Undone::Mistaken("so".to_owned()));
        assert_eq!(sorted(404), Undone::Mistaken("so".to_owned()));
        assert_eq!(sorted(503), Undone::Broken("so".to_owned()));
        assert_eq!(refused(409, "/problems/ambiguous"), Undone::Mistaken("so".to_owned()));
    }

    #[test]
    fn a_server_that_is_not_there_is_no_stage() {
        let problem = Live::new("http://127.0.0.1:1").err().unwrap();
        assert!(format!("{problem:#}").contains("cannot reach a server"), "{problem:#}");
    }
}
