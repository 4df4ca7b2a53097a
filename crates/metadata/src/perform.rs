//! Performs requests: reads published documents, or calls the control plane.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::Guard;
use forewarn_imds::{
    Edition, Format, RequestError, TokenHolder, parse_start_requests, unsigned_token, versions_body,
};
use forewarn_types::{Name, Now};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::callers::{Caller, LoadGuard, LoadKind, RequestKind, TakenFault};
use crate::control_plane::{ApprovalError, ControlPlane, RETRY_AFTER_SECONDS};
use crate::counts::EndpointCounts;
use crate::endpoint::Endpoint;
use crate::published::{PollDuty, PublishedDocument};
use crate::request::KnownIncarnations;
use crate::response::Response;
use crate::route::Action;
use crate::settings::{FirstAnswer, IdentityToken};

/// Maximum time that the first request of a tenant waits for the enrolment.
const ENROL_WAIT_MAX: Duration = Duration::from_secs(2);

/// Maximum time that a poll waits for its report.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(2);

/// Maximum time that an approval waits to be durable.
const APPROVE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Position of a request among those of its tenant: the first one enables Scheduled Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollOrder {
    First,
    Later,
}

/// An admitted request, and the load that it occupies until its response.
pub(crate) struct Admitted {
    pub poll_order: PollOrder,
    pub now: Now,
    _guard: Option<LoadGuard>,
}

impl Admitted {
    /// Returns true if the response has the time of the admission.
    pub(crate) fn is_prompt(&self, action: &Action) -> bool {
        self.poll_order == PollOrder::Later && matches!(action, Action::Events { wait: None, .. })
    }
}

/// A request that waits for a change of the document.
pub(crate) struct Waiting {
    waiting: Gauge,
    _guard: Option<LoadGuard>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiting.dec();
    }
}

fn too_many(limited: &Counter) -> RequestError {
    limited.inc();
    RequestError::TooManyRequests { retry_after_seconds: RETRY_AFTER_SECONDS }
}

impl<C: ControlPlane> Endpoint<C> {
    /// Counts of connections and requests.
    #[must_use]
    pub fn counts(&self) -> &Arc<EndpointCounts> {
        &self.counts
    }

    /// Admits a request that has passed every check but the rate limit. It counts for the enrolment of its tenant even
    /// if the limit rejects it.
    pub(crate) async fn admit(
        &self,
        caller: &Arc<Caller>,
        action: &Action,
    ) -> Result<Admitted, RequestError> {
        let now = self.control.now();
        let poll_order = match action {
            Action::Events { .. } | Action::Approve => self.record_request(caller, now).await,
            Action::Instance { .. } | Action::Versions | Action::Members | Action::Token { .. } => {
                PollOrder::Later
            }
        };
        let counts = &self.counts;
        if let Some(limiter) = &self.limiter
            && !limiter.take(caller.id(), Instant::now())
        {
            return Err(too_many(&counts.limited_rate));
        }
        let max = self.settings.limits.map(|limits| limits.in_flight);
        let guard = self.guard(caller, LoadKind::InFlight, max, &counts.limited_in_flight)?;
        Ok(Admitted { poll_order, now, _guard: guard })
    }

    /// The response to a poll that needs no waiting: there is no duty before it, the request has no `wait`, and the
    /// machine is within its limits. `None` otherwise; the request then takes the usual path.
    pub(crate) fn respond_at_once(
        &self,
        caller: &Arc<Caller>,
        action: &Action,
        now: Now,
    ) -> Option<Response> {
        let Action::Events { edition, known, wait: None } = action else { return None };
        let published = caller.slot.read();
        if !matches!(published.duty, PollDuty::None) || self.has_faults() {
            return None;
        }
        if let Some(limits) = &self.settings.limits {
            // The request is in flight during the check. A rejection is repeated and counted on the usual path.
            let _guard = LoadGuard::take(caller, LoadKind::InFlight, limits.in_flight)?;
            let limiter = self.limiter.as_ref();
            if limiter.is_some_and(|limiter| !limiter.take(caller.id(), Instant::now())) {
                return None;
            }
        }
        caller.slot.record_request(now.steady);
        caller.polled.note(now.wall, *edition, published.last_audit_entry);
        Some(document_response(published, *edition, known))
    }

    /// Returns true if a machine has a fault: no response is prompt then. A server that injects none has no table.
    fn has_faults(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.has_any())
    }

    /// Takes the fault of a poll or of an approval.
    pub(crate) fn take_fault(&self, caller: &Caller, action: &Action) -> Option<TakenFault> {
        let faults = self.faults.as_ref()?;
        let kind = match action {
            Action::Events { .. } => RequestKind::Poll,
            Action::Approve => RequestKind::Approve,
            Action::Instance { .. } | Action::Versions | Action::Members | Action::Token { .. } => {
                return None;
            }
        };
        faults.take(caller.id(), kind)
    }

    /// Takes one unit of load for a machine, if there is a limit.
    fn guard(
        &self,
        caller: &Arc<Caller>,
        kind: LoadKind,
        max: Option<u32>,
        limited: &Counter,
    ) -> Result<Option<LoadGuard>, RequestError> {
        let Some(max) = max else { return Ok(None) };
        LoadGuard::take(caller, kind, max).map(Some).ok_or_else(|| too_many(limited))
    }

    /// Admits a waiting request, unless too many requests of its machine already wait.
    pub(crate) fn admit_waiting(&self, caller: &Arc<Caller>) -> Result<Waiting, RequestError> {
        let counts = &self.counts;
        let max = self.settings.limits.map(|limits| limits.waiting);
        let guard = self.guard(caller, LoadKind::Waiting, max, &counts.limited_waiting)?;
        counts.waiting.inc();
        Ok(Waiting { waiting: counts.waiting.clone(), _guard: guard })
    }

    async fn record_request(&self, caller: &Caller, now: Now) -> PollOrder {
        caller.slot.record_request(now.steady);
        let is_enrolled = caller.slot.read().is_enrolled();
        let order = if is_enrolled { PollOrder::Later } else { Box::pin(self.enrol(caller)).await };
        if caller.slot.read().reports(caller.machine) {
            Box::pin(self.report(caller)).await;
        }
        order
    }

    /// Reports a poll of a machine that the control plane waits for. The poll is answered whether or not the report
    /// succeeds, and the next one reports again.
    async fn report(&self, caller: &Caller) {
        let (control, id) = (self.control.clone(), caller.id());
        // In a task of its own, which continues if the client disconnects.
        let reporting = tokio::spawn(async move { control.report_poll(id).await });
        let machine = caller.machine;
        match tokio::time::timeout(REPORT_WAIT_MAX, reporting).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(problem))) => tracing::warn!(%machine, error = %problem, "report of a poll failed"),
            Ok(Err(_)) | Err(_) => tracing::warn!(%machine, "report of a poll timed out"),
        }
    }

    async fn enrol(&self, caller: &Caller) -> PollOrder {
        // In a task of its own, which continues if the client disconnects.
        let (control, cluster, tenant) = (self.control.clone(), caller.slot.cluster, caller.slot.tenant);
        let enrolling = tokio::spawn(async move { control.enrol(cluster, tenant).await });
        match tokio::time::timeout(ENROL_WAIT_MAX, enrolling).await {
            Ok(Ok(Ok(()))) => return PollOrder::First,
            Ok(Ok(Err(problem))) => tracing::warn!(%tenant, error = %problem, "tenant enrolment failed"),
            Ok(Err(_)) | Err(_) => tracing::warn!(%tenant, "tenant enrolment timed out"),
        }
        // The document exists anyway, and the next request tries again.
        PollOrder::Later
    }

    /// Performs a request. The response reflects the state at the time of return.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        action: Action,
        body: &[u8],
        admitted: &Admitted,
    ) -> Response {
        match action {
            Action::Events { edition, known, wait } => {
                match (admitted.poll_order, self.settings.first_answer) {
                    (PollOrder::Later, _) | (PollOrder::First, FirstAnswer::Now) => {}
                    (PollOrder::First, FirstAnswer::Delay(span)) => tokio::time::sleep(span).await,
                    (PollOrder::First, FirstAnswer::Empty) => return Response::NothingYet,
                }
                let published = caller.slot.read();
                // A waiting request is answered at the change of the document, which is later than its admission.
                let now = if wait.is_some() { self.control.now() } else { admitted.now };
                caller.polled.note(now.wall, edition, published.last_audit_entry);
                document_response(published, edition, &known)
            }
            Action::Approve => {
                let response = Box::pin(self.approve(caller, body)).await;
                let counts = &self.counts;
                let is_refused = matches!(response, Response::Refused(_));
                let outcome =
                    if is_refused { &counts.start_requests_refused } else { &counts.start_requests_accepted };
                outcome.inc();
                response
            }
            Action::Instance { path, version, format } => {
                let Some(instance) = self.control.instance(caller) else {
                    return RequestError::UnknownCaller.into();
                };
                match (instance.answer(version, &path, format), format) {
                    (Ok(body), Format::Json) => Response::Json(body.into()),
                    (Ok(body), Format::Text) => Response::Text(body),
                    (Err(problem), Format::Json | Format::Text) => problem.into(),
                }
            }
            Action::Versions => Response::Json(versions_body().into()),
            Action::Members => Response::Json(members(&self.control.members(caller)).into()),
            Action::Token { resource } => self.token(caller, &resource),
        }
    }

    async fn approve(&self, caller: &Caller, body: &[u8]) -> Response {
        let events = match parse_start_requests(body) {
            Ok(events) => events,
            Err(bad) => return RequestError::from(bad).into(),
        };
        let approved = tokio::time::timeout(APPROVE_WAIT_MAX, self.control.approve(caller, events)).await;
        match approved.unwrap_or(Err(ApprovalError::Unavailable)) {
            Ok(()) => Response::Done,
            Err(error) => RequestError::from(error).into(),
        }
    }

    fn token(&self, caller: &Caller, resource: &str) -> Response {
        match &self.settings.identity_token {
            IdentityToken::Off => RequestError::NotFound.into(),
            IdentityToken::Unsigned { directory } => {
                let Some(instance) = self.control.instance(caller) else {
                    return RequestError::UnknownCaller.into();
                };
                let holder = TokenHolder { id: &instance.vm_id, resource_id: &instance.resource_id };
                Response::Json(unsigned_token(directory, &holder, resource, SystemTime::now()).into())
            }
        }
    }
}

/// The document, or 304 if the client has it.
pub(crate) fn document_response(
    published: Guard<Arc<PublishedDocument>>,
    edition: Edition,
    known: &KnownIncarnations,
) -> Response {
    let incarnation = published.document.incarnation;
    if known.has(incarnation) {
        Response::NotModified { incarnation }
    } else {
        Response::Document { published, edition }
    }
}

/// Names need no escaping.
fn members(names: &[Name]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("{{\"members\":[{}]}}", quoted.join(","))
}
