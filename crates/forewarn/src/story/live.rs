//! Runs a story on a server.
//!
//! Operator commands go through the operator API, requests of machines through the metadata endpoint. The clock
//! advances from one change of a document to the next.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use forewarn_control::{
    AuditEntry, AuditPage, ClockChange, ClockView, HostView, MachineView, NamedCommand, NewFault, Outcome,
    RolloutView, ServerView, TenantView,
};
use forewarn_http_client::{Bytes, Method};
use forewarn_imds::{BadStartRequest, Edition, RequestError, render_start_requests};
use forewarn_lifecycle::{EventId, Refusal, Timestamp};
use forewarn_story::{Backend, BackendError};
use forewarn_types::Span;

use super::faults::StoryFaults;
use crate::client::{ApiError, Client};
use crate::service::{Installation, installation};

/// A server with an empty fleet and a frozen clock.
pub(crate) struct LiveStage {
    api: Client,
    metadata: Client,
    faults: StoryFaults,
    beginning: Timestamp,
    now: Timestamp,
    audit: RefCell<AuditLog>,
}

/// The audit log of the cluster as far as it has been read.
#[derive(Default)]
struct AuditLog {
    entries: Vec<AuditEntry>,
    /// The position after them.
    cursor: Option<String>,
}

/// Entries of the cluster of a story, oldest first.
const AUDIT: &str = "/v1/audit?cluster=default&order=oldest&limit=1000";

/// The hint for a server on which no story can run. Beside an installed service nothing proposes another server.
fn hint() -> &'static str {
    match installation() {
        Installation::Installed => "hint: use --api URL of a server for tests",
        Installation::Absent => {
            "hint: forewarn dev --fleet none --clock frozen --clock-start 2026-01-01T00:00:00Z"
        }
    }
}

impl LiveStage {
    /// Connects to the server. Fails if a story cannot run there.
    pub(crate) fn new(api: Client) -> Result<Self> {
        let hint = hint();
        let clock: ClockView = api.get("/v1/clock")?;
        ensure!(
            clock.kind == "virtual",
            "a live story needs a virtual clock, but the clock of the server is real\n  {hint}"
        );
        ensure!(clock.speed == 0, "a live story needs a frozen clock\n  {hint}");
        let beginning = clock.now.0;
        ensure!(
            beginning.rounded_up() == beginning,
            "a live story needs a clock at a whole second: {}\n  {hint}",
            clock.now
        );
        let hosts: Vec<HostView> = api.pages("/v1/hosts")?;
        let tenants: Vec<TenantView> = api.pages("/v1/tenants")?;
        if !(hosts.is_empty() && tenants.is_empty()) {
            bail!("a live story needs an empty fleet\n  {hint}");
        }
        let server: ServerView = api.get("/v1/server")?;
        ensure!(server.prefix, "a live story needs a server that accepts requests for /vm/NAME\n  {hint}");
        let metadata = server.metadata.first().context("the server has no metadata endpoint")?;
        let (metadata, audit) = (Client::new(metadata)?, RefCell::default());
        let faults = StoryFaults::default();
        Ok(Self { metadata, api, faults, beginning, now: beginning, audit })
    }

    /// Reads the entries of the cluster that are not known yet.
    fn read_audit(&self, log: &mut AuditLog) -> Result<()> {
        loop {
            let cursor = log.cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
            let page: AuditPage = self.api.get(&format!("{AUDIT}{cursor}"))?;
            log.entries.extend(page.items);
            let is_last = page.next.is_none();
            log.cursor = page.next.or(Some(page.head));
            if is_last {
                return Ok(());
            }
        }
    }

    /// Sends a request as a machine. Returns the body of an error response, None on success.
    fn request(
        &self,
        machine: &MachineView,
        method: Method,
        body: String,
    ) -> Result<Option<Bytes>, BackendError> {
        let MachineView { tenant, name, .. } = machine;
        let edition = Edition::newest().as_str();
        let path = format!("/vm/{tenant}/{name}/metadata/scheduledevents?api-version={edition}");
        let send = || self.metadata.send(method, &path, &[("Metadata", "true")], Bytes::from(body));
        let response = self.faults.without(&self.api, machine, send);
        let (status, body) = response.map_err(backend_error)?;
        Ok((!(200..300).contains(&status)).then_some(body))
    }

    /// Performs a command. Returns what the server has decided.
    pub(crate) fn order(&self, command: &NamedCommand) -> Result<Outcome, BackendError> {
        self.api.post("/v1/commands", command).map_err(backend_error)
    }

    fn list<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, BackendError> {
        self.api.pages(path).map_err(backend_error)
    }
}

impl Backend for LiveStage {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), BackendError> {
        self.order(command).map(drop)
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), BackendError> {
        match self.request(machine, Method::GET, String::new())? {
            None => Ok(()),
            Some(body) => Err(BackendError::Failed(String::from_utf8_lossy(&body).into_owned())),
        }
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), BackendError> {
        match self.request(machine, Method::POST, render_start_requests(events))? {
            None => Ok(()),
            Some(body) => Err(refused_approval(&body)),
        }
    }

    fn inject(&mut self, fault: &NewFault) -> Result<(), BackendError> {
        self.faults.inject(&self.api, fault).map_err(backend_error)
    }

    fn beginning(&self) -> Timestamp {
        self.beginning
    }

    fn elapsed(&self) -> Duration {
        self.now.since(self.beginning)
    }

    fn advance(&mut self, end: Duration) -> Result<(), BackendError> {
        let left = end.saturating_sub(self.elapsed());
        if left > Duration::ZERO {
            let order = ClockChange::Next { within: Some(Span(left)) };
            let clock: ClockView = self.api.post("/v1/clock", &order).map_err(backend_error)?;
            if clock.now.0 <= self.now {
                return Err(BackendError::Failed(format!(
                    "the clock of the server does not advance: {}",
                    clock.now
                )));
            }
            self.now = clock.now.0;
        }
        Ok(())
    }

    fn advance_to_due(&mut self, end: Duration) -> Result<(), BackendError> {
        let clock: ClockView = self.api.get("/v1/clock").map_err(backend_error)?;
        // A span has whole seconds: less is rounded up, as the server does it.
        let due = clock.next_in.map(|Span(due)| due.max(Duration::from_secs(1)));
        self.advance(due.map_or(end, |due| self.elapsed().saturating_add(due).min(end)))
    }

    fn tenants(&self) -> Result<Vec<TenantView>, BackendError> {
        self.list("/v1/tenants")
    }

    fn machines(&self) -> Result<Vec<MachineView>, BackendError> {
        self.list("/v1/machines")
    }

    fn hosts(&self) -> Result<Vec<HostView>, BackendError> {
        self.list("/v1/hosts")
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, BackendError> {
        let mut rollouts: Vec<RolloutView> = self.list("/v1/rollouts?ended=true")?;
        rollouts.sort_by_key(|rollout| rollout.id);
        Ok(rollouts)
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, BackendError> {
        let edition = Edition::newest().as_str();
        let path = format!("/v1/tenants/{tenant}/document?api-version={edition}");
        let (status, body) = self.api.send(Method::GET, &path, &[], Bytes::new()).map_err(backend_error)?;
        match status {
            200 => Ok(body.into()),
            _ => Err(BackendError::Failed(format!(
                "no document for {tenant}: the server responds with status {status}"
            ))),
        }
    }

    fn audit(&self, after: u64) -> Result<Vec<AuditEntry>, BackendError> {
        let mut log = self.audit.borrow_mut();
        self.read_audit(&mut log).map_err(backend_error)?;
        let first = log.entries.partition_point(|entry| entry.number <= after);
        Ok(log.entries[first..].to_vec())
    }
}

/// Maps an error by its status: 409 is a rejection by the rules; 400, 404 and an ambiguous name are mistakes in the
/// story.
fn backend_error(error: anyhow::Error) -> BackendError {
    match error.downcast() {
        Ok(ApiError { kind, detail, .. }) if kind == "/problems/ambiguous" => BackendError::Invalid(detail),
        Ok(ApiError { status: 409, detail, .. }) => BackendError::Refused(detail),
        Ok(ApiError { status: 400 | 404, detail, .. }) => BackendError::Invalid(detail),
        Ok(ApiError { detail, .. }) => BackendError::Failed(detail),
        Err(error) => BackendError::Failed(format!("{error:#}")),
    }
}

/// Translates an error of the metadata endpoint to the message of the rules, which transcripts contain.
fn refused_approval(body: &[u8]) -> BackendError {
    let matches = |problem: RequestError| body == problem.body().as_bytes();
    if matches(RequestError::UnknownEvent) {
        BackendError::Refused(Refusal::UnknownEvent.to_string())
    } else if matches(BadStartRequest::StartRequestsEmpty.into()) {
        BackendError::Refused(Refusal::NoEvents.to_string())
    } else {
        BackendError::Failed(String::from_utf8_lossy(body).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_approval_has_the_message_of_the_rules() {
        let refused = |problem: RequestError| refused_approval(problem.body().as_bytes());
        let unknown = "unknown event id among the start requests".to_owned();
        assert_eq!(refused(RequestError::UnknownEvent), BackendError::Refused(unknown));
        let none = BadStartRequest::StartRequestsEmpty.into();
        assert_eq!(refused(none), BackendError::Refused("no event id given".to_owned()));
        assert!(matches!(refused(RequestError::NotFound), BackendError::Failed(_)));
    }

    #[test]
    fn errors_are_mapped_by_status() {
        let refused = |status, kind: &str| {
            backend_error(
                ApiError { status, kind: kind.to_owned(), detail: "so".to_owned(), pointer: None }.into(),
            )
        };
        let sorted = |status| refused(status, "");
        assert_eq!(sorted(409), BackendError::Refused("so".to_owned()));
        assert_eq!(sorted(400), BackendError::Invalid("so".to_owned()));
        assert_eq!(sorted(404), BackendError::Invalid("so".to_owned()));
        assert_eq!(sorted(503), BackendError::Failed("so".to_owned()));
        assert_eq!(refused(409, "/problems/ambiguous"), BackendError::Invalid("so".to_owned()));
    }

    #[test]
    fn an_unreachable_server_is_an_error() {
        let problem = LiveStage::new(Client::new("http://127.0.0.1:1").unwrap()).err().unwrap();
        assert!(format!("{problem:#}").contains("cannot reach the server"), "{problem:#}");
    }
}
