//! Requests to an endpoint.
//!
//! [`crate::poll_step`] decides on the time of the next poll. Every request has `Metadata: true`; none goes through a proxy.
//! Approvals and name lookups use a separate connection, so that they do not wait for a long poll.

use std::time::{Duration, Instant, SystemTime};

use forewarn_imds::{
    DOCUMENT_BYTES_MAX, Edition, ReadDocument, ReadEvent, Reading, parse_date, read_document,
    render_start_requests,
};
use forewarn_types::{EventId, Timestamp};
use serde_json::Value;

use crate::backoff::Backoff;
use crate::editions::EditionFallback;
use crate::endpoint::Endpoint;
use crate::error::{Error, message_of};
use crate::headers::with_client_headers;
use crate::http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use crate::http::{HttpClient, HttpResponse, Limits, Request, Trust};
use crate::poll_schedule::PollSchedule;
use crate::search::{NotFound, Search};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Timeouts of a response after and before the first one: enabling Scheduled Events takes up to two minutes.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
const FIRST_RESPONSE_MAX: Duration = Duration::from_secs(150);

/// Timeout of approvals and name lookups.
const OTHER_MAX: Duration = Duration::from_secs(30);

/// Size limit of a response that is not a document.
const OTHER_BYTES_MAX: usize = 1024 * 1024;

/// Limits of the length of a name and of the number of members.
const NAME_CHARS_MAX: usize = 256;
const MEMBERS_MAX: usize = 10_000;

/// The api-version of requests other than documents. All endpoints support it.
const OTHER_VERSION: &str = "2017-08-01";

/// Prefix of the `Server` header of Forewarn.
const FOREWARN: &str = "forewarn/";

/// A client of one endpoint.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    /// Connection for documents; `others` is for all other requests.
    documents: HttpClient,
    others: HttpClient,
    editions: EditionFallback,
    known: Option<CachedDocument>,
    server: Option<String>,
    /// Timeout of the next request for a document.
    timeout: Duration,
    pub(crate) schedule: PollSchedule,
}

/// The last document.
#[derive(Debug)]
struct CachedDocument {
    document: ReadDocument,
    /// Its `ETag`, if the endpoint sent one.
    tag: Option<HeaderValue>,
}

/// A document, and the time at which it was valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The parsed document.
    pub document: ReadDocument,
    /// The edition of the request.
    pub edition: Edition,
    /// Time of the service's clock; of the local clock if the response has no `Date`.
    pub date: Timestamp,
    /// Time of the response: `NotBefore` − `date` counts from here.
    pub received: Instant,
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollResponse {
    /// A document that differs from the last one.
    Document(Observation),
    /// The same document as before.
    Unchanged {
        /// Time of the service's clock.
        date: Timestamp,
    },
    /// An empty response while the service is being enabled. Earlier documents stay valid.
    Empty {
        /// Time of the service's clock.
        date: Timestamp,
    },
}

impl Observation {
    /// The time until an event may start without approval; `None` once it has started.
    ///
    /// It follows the service's clock and ignores the local time.
    #[must_use]
    pub fn left(&self, event: &ReadEvent) -> Option<Duration> {
        let then = event.not_before?.since(self.date);
        Some(then.saturating_sub(tokio::time::Instant::from_std(self.received).elapsed()))
    }
}

impl Client {
    /// Creates a client. No request is sent.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        let client = || HttpClient::new(endpoint.url().clone(), Trust::system());
        Self {
            documents: client(),
            others: client(),
            editions: EditionFallback::default(),
            known: None,
            server: None,
            timeout: FIRST_RESPONSE_MAX,
            schedule: PollSchedule::new(Backoff::with_random_seed(
                Duration::from_secs(1),
                Duration::from_secs(15),
            )),
            endpoint,
        }
    }

    /// Starts with this edition instead of the newest one.
    #[must_use]
    pub fn with_edition(self, edition: Edition) -> Self {
        Self { editions: EditionFallback::at(edition), ..self }
    }

    /// Another client of the same endpoint with its own connections, for approvals during a long poll.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self { editions: self.editions, server: self.server.clone(), ..Self::new(self.endpoint.clone()) }
    }

    /// A client of the endpoint that [`Search::from_environment`] finds.
    ///
    /// # Errors
    /// [`NotFound`] if there is no endpoint.
    pub async fn find() -> Result<Self, NotFound> {
        Ok(Self::new(Search::from_environment().run().await?.endpoint))
    }

    /// Requests the document once, without waiting.
    ///
    /// # Errors
    /// Fails if there is no valid response.
    pub async fn poll(&mut self) -> Result<PollResponse, Error> {
        self.request_document(None).await
    }

    /// Approves events: they may start, for all machines that they name.
    ///
    /// Idempotent.
    ///
    /// # Errors
    /// Fails if the endpoint does not accept the request; then no event is approved. A rejection has the message of the
    /// endpoint.
    pub async fn approve(&mut self, ids: &[EventId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let body = render_start_requests(ids);
        for is_last in [false, true] {
            let edition = self.editions.current();
            let request = Request::post(self.events_target(edition), body.clone()).with(CONTENT_TYPE, JSON);
            let response = self.send_other_request(request).await?;
            if response.status == 200 {
                return Ok(());
            }
            if is_last || !self.editions.follow(&response) {
                return Err(Error::rejection(&self.endpoint, &response));
            }
        }
        Ok(())
    }

    /// The name of this machine, as listed in `Resources`.
    ///
    /// # Errors
    /// Fails if the endpoint does not return a valid name.
    pub async fn name(&mut self) -> Result<String, Error> {
        let path = format!("/metadata/instance/compute/name?api-version={OTHER_VERSION}&format=text");
        let response = self.send_other_request(Request::get(self.endpoint.target(&path))).await?;
        if response.status != 200 {
            return Err(Error::rejection(&self.endpoint, &response));
        }
        let text = String::from_utf8_lossy(&response.body);
        parse_name(text.trim()).ok_or_else(|| self.invalid_response("machine name", &response))
    }

    /// The names of all machines that share the document of this one. Only Forewarn supports this.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the endpoint is not Forewarn.
    pub async fn members(&mut self) -> Result<Vec<String>, Error> {
        let path = format!("/metadata/forewarn/members?api-version={OTHER_VERSION}");
        let response = self.send_other_request(Request::get(self.endpoint.target(&path))).await?;
        if !response.header("server").is_some_and(|server| server.starts_with(FOREWARN)) {
            return Err(Error::Unsupported);
        }
        if response.status != 200 {
            return Err(Error::rejection(&self.endpoint, &response));
        }
        members(&response.body).ok_or_else(|| self.invalid_response("list of members", &response))
    }

    /// The edition of the next request.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.editions.current()
    }

    /// The `Server` header of the last response.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// True if the endpoint supports long polls.
    pub(crate) fn can_wait(&self) -> bool {
        self.server().is_some_and(|server| server.starts_with(FOREWARN))
    }

    /// True if the `ETag` of the last document is known. It is dropped after a failure.
    pub(crate) fn has_tag(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.tag.is_some())
    }

    /// Requests the document. With `wait`, a long poll for a document that differs from the last one.
    pub(crate) async fn request_document(&mut self, wait: Option<Duration>) -> Result<PollResponse, Error> {
        let result = self.request_with_fallback(wait).await;
        match &result {
            Ok(_) => self.timeout = RESPONSE_MAX,
            Err(Error::TimedOut { .. }) => self.timeout = (self.timeout * 2).min(FIRST_RESPONSE_MAX),
            Err(
                Error::Unreachable { .. }
                | Error::Busy { .. }
                | Error::Rejected { .. }
                | Error::Unreadable(_)
                | Error::NotAnEndpoint { .. }
                | Error::Unsupported,
            ) => {}
        }
        if result.is_err()
            && let Some(known) = &mut self.known
        {
            // The next response may come from another server, with other documents under the same incarnations.
            known.tag = None;
        }
        result
    }

    async fn request_with_fallback(&mut self, wait: Option<Duration>) -> Result<PollResponse, Error> {
        let response = self.send_document_request(wait).await?;
        if response.status == 400 && self.editions.step(&response) {
            let again = self.send_document_request(wait).await?;
            return self.handle_response(&again);
        }
        self.handle_response(&response)
    }

    async fn send_document_request(&mut self, wait: Option<Duration>) -> Result<HttpResponse, Error> {
        let mut target = self.events_target(self.editions.current());
        let wait = wait.zip(self.known.as_ref());
        if let Some((wait, known)) = wait {
            target.push_str(&format!("&wait={}s&incarnation={}", wait.as_secs(), known.document.incarnation));
        }
        let mut request = with_client_headers(Request::get(target));
        if let Some(tag) = self.known.as_ref().and_then(|known| known.tag.clone()) {
            request = request.with(IF_NONE_MATCH, tag);
        }
        let response = wait.map_or(self.timeout, |(wait, _)| self.timeout + wait);
        let limits = Limits { answer: response, body_bytes: DOCUMENT_BYTES_MAX, ..Limits::default() };
        let sent = self.documents.send(&request, limits).await;
        sent.map_err(|error| Error::of(&self.endpoint, error))
    }

    async fn send_other_request(&mut self, request: Request) -> Result<HttpResponse, Error> {
        let limits = Limits { answer: OTHER_MAX, body_bytes: OTHER_BYTES_MAX, ..Limits::default() };
        let sent = self.others.send(&with_client_headers(request), limits).await;
        sent.map_err(|error| Error::of(&self.endpoint, error))
    }

    fn handle_response(&mut self, response: &HttpResponse) -> Result<PollResponse, Error> {
        self.server = response.header("server").map(str::to_owned);
        let date = response.header("date").and_then(parse_date).unwrap_or_else(local_time);
        let received = tokio::time::Instant::now().into_std();
        match (response.status, &mut self.known) {
            (200, _) => {}
            (304, Some(_)) => return Ok(PollResponse::Unchanged { date }),
            (_, _) => return Err(Error::rejection(&self.endpoint, response)),
        }
        self.editions.settle();
        let document = match read_document(&response.body)? {
            Reading::NoNews => return Ok(PollResponse::Empty { date }),
            Reading::Document(document) => document,
        };
        let tag = response.headers.get(ETAG).cloned();
        let is_news = self.known.as_ref().is_none_or(|known| known.document != document);
        self.known = Some(CachedDocument { document: document.clone(), tag });
        if !is_news {
            return Ok(PollResponse::Unchanged { date });
        }
        tracing::debug!(
            incarnation = document.incarnation,
            events = document.events.len(),
            "document changed"
        );
        Ok(PollResponse::Document(Observation { document, edition: self.editions.current(), date, received }))
    }

    fn events_target(&self, edition: Edition) -> String {
        self.endpoint.target(&format!("/metadata/scheduledevents?api-version={}", edition.as_str()))
    }

    fn invalid_response(&self, what: &str, response: &HttpResponse) -> Error {
        let reason = format!("invalid {what}: {}", message_of(response));
        Error::NotAnEndpoint { endpoint: self.endpoint.to_string(), reason }
    }
}

fn members(body: &[u8]) -> Option<Vec<String>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let names = value.get("members")?.as_array()?;
    if names.len() > MEMBERS_MAX {
        return None;
    }
    names.iter().map(|name| parse_name(name.as_str()?)).collect()
}

/// Checks the length and the characters of a machine name.
fn parse_name(text: &str) -> Option<String> {
    let fits = (1..=NAME_CHARS_MAX).contains(&text.chars().count());
    (fits && !text.chars().any(|c| c.is_control() || c.is_whitespace())).then(|| text.to_owned())
}

/// The local time.
fn local_time() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
