//! Asks an endpoint: one question, one answer.
//!
//! When to ask again is in [`crate::turn`]'s hands. Every request has `Metadata: true`; none goes through a proxy. What approves,
//! and what asks for names, has a connection of its own: it does not wait behind a long poll.

use std::time::{Duration, Instant, SystemTime};

use forewarn_imds::{
    DOCUMENT_BYTES_MAX, Edition, ReadDocument, ReadEvent, Reading, parse_date, read_document,
    render_start_requests,
};
use forewarn_types::{EventId, Timestamp};
use serde_json::Value;

use crate::backoff::Backoff;
use crate::editions::Ladder;
use crate::endpoint::Endpoint;
use crate::error::{Error, words};
use crate::headers::with_client_headers;
use crate::http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use crate::http::{HttpClient, HttpResponse, Limits, Request, Trust};
use crate::poll_schedule::PollSchedule;
use crate::search::{NotFound, Search};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How long an answer may take, once there has been one, and before: enabling takes up to two minutes.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(150);

/// How long an approval, or a name, may take.
const OTHER_MAX: Duration = Duration::from_secs(30);

/// Bytes of an answer that is no document.
const OTHER_BYTES_MAX: usize = 1024 * 1024;

/// Characters of a name, and names of peers.
const NAME_CHARS_MAX: usize = 256;
const MEMBERS_MAX: usize = 10_000;

/// A version that both lists have had from the beginning, for everything that is no document.
const OTHER_VERSION: &str = "2017-08-01";

/// What `Server` begins with where it is Forewarn.
const FOREWARN: &str = "forewarn/";

/// Asks an endpoint.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    /// Documents, and everything else.
    documents: HttpClient,
    others: HttpClient,
    editions: Ladder,
    known: Option<Known>,
    server: Option<String>,
    /// How long the next document may take.
    patience: Duration,
    pub(crate) schedule: PollSchedule,
}

/// The document that was seen last.
#[derive(Debug)]
struct Known {
    document: ReadDocument,
    /// By which the endpoint would know it again.
    tag: Option<HeaderValue>,
}

/// A document, and when it was true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// What was read.
    pub document: ReadDocument,
    /// The edition that was asked for.
    pub edition: Edition,
    /// What the service's clock showed; what ours did, if it does not tell.
    pub date: Timestamp,
    /// When the answer was here: `NotBefore` − `date` is counted from this moment, on this clock.
    pub received: Instant,
}

/// What one question brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Another document than before.
    Document(Sighting),
    /// The same document as before.
    Unchanged {
        /// What the service's clock showed.
        date: Timestamp,
    },
    /// Nothing yet: an empty answer, while the service is being enabled. What was known still holds.
    NoNews {
        /// What the service's clock showed.
        date: Timestamp,
    },
}

impl Sighting {
    /// How long it is, at this moment, until an event may start without approval; nothing, once it has started.
    ///
    /// It follows the service's clock, and whatever this computer's shows does not matter.
    #[must_use]
    pub fn left(&self, event: &ReadEvent) -> Option<Duration> {
        let then = event.not_before?.since(self.date);
        Some(then.saturating_sub(tokio::time::Instant::from_std(self.received).elapsed()))
    }
}

impl Client {
    /// A client of an endpoint. Nothing is asked yet.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        let line = || HttpClient::new(endpoint.url().clone(), Trust::system());
        Self {
            documents: line(),
            others: line(),
            editions: Ladder::default(),
            known: None,
            server: None,
            patience: FIRST_ANSWER_MAX,
            schedule: PollSchedule::new(Backoff::by_chance(Duration::from_secs(1), Duration::from_secs(15))),
            endpoint,
        }
    }

    /// The same, beginning with this edition instead of the newest: the one in which the endpoint has answered another client.
    #[must_use]
    pub fn with_edition(self, edition: Edition) -> Self {
        Self { editions: Ladder::at(edition), ..self }
    }

    /// Another client of the same endpoint, with connections of its own: it approves while this one waits for news.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { editions: self.editions, server: self.server.clone(), ..Self::new(self.endpoint.clone()) }
    }

    /// A client of the endpoint that [`Search::from_environment`] finds.
    ///
    /// # Errors
    /// When it is nowhere.
    pub async fn find() -> Result<Self, NotFound> {
        Ok(Self::new(Search::from_environment().run().await?.endpoint))
    }

    /// Asks for the document, once and now.
    ///
    /// # Errors
    /// When there is no answer, or one that is none.
    pub async fn poll(&mut self) -> Result<News, Error> {
        self.ask(None).await
    }

    /// Approves events: they may start, for all machines that they name.
    ///
    /// Approving twice is approving once.
    ///
    /// # Errors
    /// When it was not taken, none of them. What is refused comes with the server's own words.
    pub async fn approve(&mut self, ids: &[EventId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let body = render_start_requests(ids);
        for is_last in [false, true] {
            let edition = self.editions.current();
            let request = Request::post(self.events_target(edition), body.clone()).with(CONTENT_TYPE, JSON);
            let answer = self.ask_other(request).await?;
            if answer.status == 200 {
                return Ok(());
            }
            if is_last || !self.editions.follow(&answer) {
                return Err(Error::refusal(&self.endpoint, &answer));
            }
        }
        Ok(())
    }

    /// The name of this machine, as it is written in `Resources`.
    ///
    /// # Errors
    /// When the endpoint does not say.
    pub async fn name(&mut self) -> Result<String, Error> {
        let path = format!("/metadata/instance/compute/name?api-version={OTHER_VERSION}&format=text");
        let answer = self.ask_other(Request::get(self.endpoint.target(&path))).await?;
        if answer.status != 200 {
            return Err(Error::refusal(&self.endpoint, &answer));
        }
        let text = String::from_utf8_lossy(&answer.body);
        fit_name(text.trim()).ok_or_else(|| self.strange("the name of this machine", &answer))
    }

    /// The names of all machines that see the same document as this one. Only Forewarn tells.
    ///
    /// # Errors
    /// When the endpoint does not say: [`Error::NotOffered`] where it is not Forewarn.
    pub async fn members(&mut self) -> Result<Vec<String>, Error> {
        let path = format!("/metadata/forewarn/members?api-version={OTHER_VERSION}");
        let answer = self.ask_other(Request::get(self.endpoint.target(&path))).await?;
        if !answer.header("server").is_some_and(|server| server.starts_with(FOREWARN)) {
            return Err(Error::NotOffered);
        }
        if answer.status != 200 {
            return Err(Error::refusal(&self.endpoint, &answer));
        }
        members(&answer.body).ok_or_else(|| self.strange("the names of the members", &answer))
    }

    /// The edition that is asked for.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.editions.current()
    }

    /// What the endpoint calls itself.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Whom it asks.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether the endpoint answers when there is something to say, instead of at once.
    pub(crate) fn can_wait(&self) -> bool {
        self.server().is_some_and(|server| server.starts_with(FOREWARN))
    }

    /// Whether the document that was seen last is known by a tag: after a failure it is not, and is asked for whole.
    pub(crate) fn has_tag(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.tag.is_some())
    }

    /// Asks for the document; `wait`: for another than the one that is known, which may take so long.
    pub(crate) async fn ask(&mut self, wait: Option<Duration>) -> Result<News, Error> {
        let asked = self.ask_with_fallback(wait).await;
        match &asked {
            Ok(_) => self.patience = ANSWER_MAX,
            Err(Error::Late { .. }) => self.patience = (self.patience * 2).min(FIRST_ANSWER_MAX),
            Err(
                Error::Unreachable { .. }
                | Error::Busy { .. }
                | Error::Refused { .. }
                | Error::Unreadable(_)
                | Error::NotAnEndpoint { .. }
                | Error::NotOffered,
            ) => {}
        }
        if asked.is_err()
            && let Some(known) = &mut self.known
        {
            // Whoever answers next may be another, with other documents by the same numbers.
            known.tag = None;
        }
        asked
    }

    async fn ask_with_fallback(&mut self, wait: Option<Duration>) -> Result<News, Error> {
        let answer = self.ask_once(wait).await?;
        if answer.status == 400 && self.editions.step(&answer) {
            let again = self.ask_once(wait).await?;
            return self.take(&again);
        }
        self.take(&answer)
    }

    async fn ask_once(&mut self, wait: Option<Duration>) -> Result<HttpResponse, Error> {
        let mut target = self.events_target(self.editions.current());
        let wait = wait.zip(self.known.as_ref());
        if let Some((wait, known)) = wait {
            target.push_str(&format!("&wait={}s&incarnation={}", wait.as_secs(), known.document.incarnation));
        }
        let mut request = with_client_headers(Request::get(target));
        if let Some(tag) = self.known.as_ref().and_then(|known| known.tag.clone()) {
            request = request.with(IF_NONE_MATCH, tag);
        }
        let answer = wait.map_or(self.patience, |(wait, _)| self.patience + wait);
        let limits = Limits { answer, body_bytes: DOCUMENT_BYTES_MAX, ..Limits::default() };
        let sent = self.documents.send(&request, limits).await;
        sent.map_err(|trouble| Error::of(&self.endpoint, trouble))
    }

    async fn ask_other(&mut self, request: Request) -> Result<HttpResponse, Error> {
        let limits = Limits { answer: OTHER_MAX, body_bytes: OTHER_BYTES_MAX, ..Limits::default() };
        let sent = self.others.send(&with_client_headers(request), limits).await;
        sent.map_err(|trouble| Error::of(&self.endpoint, trouble))
    }

    fn take(&mut self, answer: &HttpResponse) -> Result<News, Error> {
        self.server = answer.header("server").map(str::to_owned);
        let date = answer.header("date").and_then(parse_date).unwrap_or_else(local_time);
        let received = tokio::time::Instant::now().into_std();
        match (answer.status, &mut self.known) {
            (200, _) => {}
            (304, Some(_)) => return Ok(News::Unchanged { date }),
            (_, _) => return Err(Error::refusal(&self.endpoint, answer)),
        }
        self.editions.settle();
        let document = match read_document(&answer.body)? {
            Reading::NoNews => return Ok(News::NoNews { date }),
            Reading::Document(document) => document,
        };
        let tag = answer.headers.get(ETAG).cloned();
        let is_news = self.known.as_ref().is_none_or(|known| known.document != document);
        self.known = Some(Known { document: document.clone(), tag });
        if !is_news {
            return Ok(News::Unchanged { date });
        }
        tracing::debug!(
            incarnation = document.incarnation,
            events = document.events.len(),
            "another document"
        );
        Ok(News::Document(Sighting { document, edition: self.editions.current(), date, received }))
    }

    fn events_target(&self, edition: Edition) -> String {
        self.endpoint.target(&format!("/metadata/scheduledevents?api-version={}", edition.as_str()))
    }

    fn strange(&self, what: &str, answer: &HttpResponse) -> Error {
        let why = format!("{what} is not of the expected form: {}", words(answer));
        Error::NotAnEndpoint { endpoint: self.endpoint.to_string(), why }
    }
}

fn members(body: &[u8]) -> Option<Vec<String>> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let names = said.get("members")?.as_array()?;
    if names.len() > MEMBERS_MAX {
        return None;
    }
    names.iter().map(|name| fit_name(name.as_str()?)).collect()
}

/// A name that a machine can have.
fn fit_name(text: &str) -> Option<String> {
    let fits = (1..=NAME_CHARS_MAX).contains(&text.chars().count());
    (fits && !text.chars().any(|c| c.is_control() || c.is_whitespace())).then(|| text.to_owned())
}

/// What our own clock shows.
fn local_time() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
