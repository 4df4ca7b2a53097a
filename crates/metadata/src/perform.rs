//! Doing what was asked: reading what is published, or asking the rules.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::Guard;
use forewarn_imds::{
    Edition, Format, Problem, TokenHolder, parse_start_requests, unsigned_token, versions_body,
};
use forewarn_types::{Name, Now};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::answer::Answer;
use crate::control_plane::{ApprovalError, ControlPlane, RETRY_AFTER_SECONDS};
use crate::directory::Caller;
use crate::front::Front;
use crate::load::Kind;
use crate::published::Published;
use crate::request::Known;
use crate::route::Asked;
use crate::settings::{FirstAnswer, IdentityToken};
use crate::share::Share;

/// The longest that the first request of a tenant waits to be enrolled.
const ENROL_WAIT_MAX: Duration = Duration::from_secs(2);

/// The longest that an approval waits to be durable.
const APPROVE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Whether a request is the one that enabled Scheduled Events for its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    First,
    Later,
}

/// A request that may be answered, and what it takes up until it is.
pub(crate) struct Admitted {
    pub visit: Visit,
    pub now: Now,
    _share: Option<Share>,
}

impl Admitted {
    /// Whether it is answered at the moment at which it was admitted.
    pub(crate) fn is_prompt(&self, asked: &Asked) -> bool {
        self.visit == Visit::Later && matches!(asked, Asked::Events { wait: None, .. })
    }
}

/// A request that waits for news.
pub(crate) struct Waiting {
    waiting: Gauge,
    _share: Option<Share>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiting.dec();
    }
}

fn too_many(limited: &Counter) -> Problem {
    limited.inc();
    Problem::TooManyRequests { retry_after_seconds: RETRY_AFTER_SECONDS }
}

impl<C: ControlPlane> Front<C> {
    /// A request has passed every check but the last: it counts for the enrolment of its tenant. Then the last check.
    pub(crate) async fn admit(&self, caller: &Arc<Caller>, asked: &Asked) -> Result<Admitted, Problem> {
        let now = self.control.now();
        let visit = match asked {
            Asked::Events { .. } | Asked::Approve => self.hear(caller, now).await,
            Asked::Instance { .. } | Asked::Versions | Asked::Members | Asked::Token { .. } => Visit::Later,
        };
        let counts = &self.counts;
        if let Some(limiter) = &self.limiter
            && !limiter.take(caller.machine, Instant::now())
        {
            return Err(too_many(&counts.limited_rate));
        }
        let max = self.settings.limits.map(|limits| limits.in_flight);
        let share = self.share(caller, Kind::InFlight, max, &counts.limited_in_flight)?;
        Ok(Admitted { visit, now, _share: share })
    }

    /// The answer to a poll that needs nothing that may take time: its tenant is enrolled, nothing is waited for, and the
    /// machine is within its limits. `None` if it does: then it goes the usual way.
    pub(crate) fn answer_at_once(&self, caller: &Arc<Caller>, asked: &Asked, now: Now) -> Option<Answer> {
        let Asked::Events { edition, known, wait: None } = asked else { return None };
        let published = caller.slot.read();
        if !published.enrolled {
            return None;
        }
        if let Some(limits) = &self.settings.limits {
            // It is in flight while it is looked at; what is refused here is refused, and counted, there.
            let _share = Share::take(caller, Kind::InFlight, limits.in_flight)?;
            let limiter = self.limiter.as_ref();
            if limiter.is_some_and(|limiter| !limiter.take(caller.machine, Instant::now())) {
                return None;
            }
        }
        caller.slot.hear(now.steady);
        caller.polled.note(now.wall, *edition, published.told);
        Some(shown(published, *edition, known))
    }

    /// One more of something for a machine, where there is a limit.
    fn share(
        &self,
        caller: &Arc<Caller>,
        kind: Kind,
        max: Option<u32>,
        limited: &Counter,
    ) -> Result<Option<Share>, Problem> {
        let Some(max) = max else { return Ok(None) };
        Share::take(caller, kind, max).map(Some).ok_or_else(|| too_many(limited))
    }

    /// Lets a request wait for news, if not too many of its machine wait already.
    pub(crate) fn let_wait(&self, caller: &Arc<Caller>) -> Result<Waiting, Problem> {
        let counts = &self.counts;
        let max = self.settings.limits.map(|limits| limits.waiting);
        let share = self.share(caller, Kind::Waiting, max, &counts.limited_waiting)?;
        counts.waiting.inc();
        Ok(Waiting { waiting: counts.waiting.clone(), _share: share })
    }

    async fn hear(&self, caller: &Caller, now: Now) -> Visit {
        caller.slot.hear(now.steady);
        if caller.slot.read().enrolled {
            return Visit::Later;
        }
        // In a task of its own: it goes on even if the caller hangs up.
        let (control, cluster, tenant) = (self.control.clone(), caller.slot.cluster, caller.slot.tenant);
        let enrolling = tokio::spawn(async move { control.enrol(cluster, tenant).await });
        match tokio::time::timeout(ENROL_WAIT_MAX, enrolling).await {
            Ok(Ok(Ok(()))) => return Visit::First,
            Ok(Ok(Err(problem))) => tracing::warn!(%tenant, %problem, "not enrolled"),
            Ok(Err(_)) | Err(_) => tracing::warn!(%tenant, "not enrolled in time"),
        }
        // The document is there all the same, and the next request tries again.
        Visit::Later
    }

    /// Answers. The answer is of the moment at which this returns.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        asked: Asked,
        body: &[u8],
        admitted: &Admitted,
    ) -> Answer {
        match asked {
            Asked::Events { edition, known, wait } => {
                match (admitted.visit, self.settings.first_answer) {
                    (Visit::Later, _) | (Visit::First, FirstAnswer::Now) => {}
                    (Visit::First, FirstAnswer::Delay(span)) => tokio::time::sleep(span).await,
                    (Visit::First, FirstAnswer::Empty) => return Answer::NothingYet,
                }
                let published = caller.slot.read();
                // Who waits is answered as soon as there is something: the moment at which it asked would be too early.
                let now = if wait.is_some() { self.control.now() } else { admitted.now };
                caller.polled.note(now.wall, edition, published.told);
                shown(published, edition, &known)
            }
            Asked::Approve => {
                let answer = self.approve(caller, body).await;
                let counts = &self.counts;
                let is_refused = matches!(answer, Answer::Refused(_));
                let outcome =
                    if is_refused { &counts.start_requests_refused } else { &counts.start_requests_accepted };
                outcome.inc();
                answer
            }
            Asked::Instance { path, version, format } => {
                match (caller.instance.answer(version, &path, format), format) {
                    (Ok(body), Format::Json) => Answer::Json(body.into()),
                    (Ok(body), Format::Text) => Answer::Text(body),
                    (Err(problem), Format::Json | Format::Text) => problem.into(),
                }
            }
            Asked::Versions => Answer::Json(versions_body().into()),
            Asked::Members => Answer::Json(members(&caller.slot.read().members).into()),
            Asked::Token { resource } => self.token(caller, &resource),
        }
    }

    async fn approve(&self, caller: &Caller, body: &[u8]) -> Answer {
        let events = match parse_start_requests(body) {
            Ok(events) => events,
            Err(bad) => return Problem::from(bad).into(),
        };
        let approved = tokio::time::timeout(APPROVE_WAIT_MAX, self.control.approve(caller, events)).await;
        match approved.unwrap_or(Err(ApprovalError::Unavailable)) {
            Ok(()) => Answer::Done,
            Err(error) => Problem::from(error).into(),
        }
    }

    fn token(&self, caller: &Caller, resource: &str) -> Answer {
        match &self.settings.identity_token {
            IdentityToken::Off => Problem::NotFound.into(),
            IdentityToken::Unsigned { directory } => {
                let (id, resource_id) = (&caller.instance.vm_id, &caller.instance.resource_id);
                let holder = TokenHolder { id, resource_id };
                Answer::Json(unsigned_token(directory, &holder, resource, SystemTime::now()).into())
            }
        }
    }
}

/// A document, unless the caller has it already.
fn shown(published: Guard<Arc<Published>>, edition: Edition, known: &Known) -> Answer {
    let incarnation = published.document.incarnation;
    if known.has(incarnation) {
        Answer::NotModified { incarnation }
    } else {
        Answer::Document { published, edition }
    }
}

/// A name needs no escaping.
fn members(names: &[Name]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("{{\"members\":[{}]}}", quoted.join(","))
}
