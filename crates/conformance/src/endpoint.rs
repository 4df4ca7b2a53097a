//! The endpoint as a client sees it: each request on a connection of its own.

use std::time::Duration;

use forewarn_http_client::{
    HeaderName, HeaderValue, HttpClient, HttpResponse, Limits, Method, Request, Trust, Url,
};
use forewarn_imds::{DOCUMENT_BYTES_MAX, Edition};
use serde_json::Value;
use tokio::time::sleep;

/// The path of Scheduled Events.
pub(crate) const EVENTS_PATH: &str = "/metadata/scheduledevents";

/// How often a request is repeated that exceeded the permitted rate.
const RATE_RETRIES_MAX: u32 = 10;

/// Wait after a response 429 without `Retry-After`.
const RATE_WAIT: Duration = Duration::from_secs(1);

/// The longest `Retry-After` that is obeyed.
const RATE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The endpoint.
pub(crate) struct Endpoint {
    url: Url,
    limits: Limits,
}

/// A document, and the response that contained it.
pub(crate) struct Fetched {
    pub(crate) response: HttpResponse,
    pub(crate) document: Value,
}

impl Endpoint {
    pub(crate) fn new(url: &Url, patience: Duration) -> Self {
        let limits = Limits { answer: patience, body_bytes: DOCUMENT_BYTES_MAX, ..Limits::default() };
        Self { url: url.clone(), limits }
    }

    /// Returns true if the base URL has a path: then there is nothing outside `/metadata` to be judged.
    pub(crate) fn is_below_path(&self) -> bool {
        self.url.target() != "/"
    }

    /// A request without header fields.
    pub(crate) fn bare(&self, method: Method, target: &str) -> Request {
        let base = self.url.target();
        Request::new(method, format!("{}{target}", base.trim_end_matches('/')), "")
    }

    /// A GET request with the header field that every edition but the first requires.
    pub(crate) fn get(&self, target: &str) -> Request {
        with(self.bare(Method::GET, target), "metadata", "true")
    }

    /// The target of Scheduled Events.
    pub(crate) fn events(edition: Edition) -> String {
        format!("{EVENTS_PATH}?api-version={}", edition.as_str())
    }

    /// Sends a request. If it exceeded the permitted rate, waits and sends it again.
    pub(crate) async fn send(&self, request: &Request) -> Result<HttpResponse, String> {
        let mut retries = 0;
        loop {
            let mut client = HttpClient::new(self.url.clone(), Trust::system());
            let response = client.send(request, self.limits).await.map_err(|error| error.to_string())?;
            if response.status != 429 || retries == RATE_RETRIES_MAX {
                return Ok(response);
            }
            retries += 1;
            let wait = response.header("retry-after").and_then(|text| text.parse().ok());
            sleep(wait.map_or(RATE_WAIT, Duration::from_secs).min(RATE_WAIT_MAX)).await;
        }
    }

    /// The document of an edition.
    pub(crate) async fn document(&self, edition: Edition) -> Result<Fetched, String> {
        let response = self.send(&self.get(&Self::events(edition))).await?;
        if response.status != 200 {
            return Err(format!("answers {} to edition {}", response.status, edition.as_str()));
        }
        let document = if response.body.is_empty() {
            Value::Null
        } else {
            let invalid = |error| format!("sends invalid JSON in edition {}: {error}", edition.as_str());
            serde_json::from_slice(&response.body).map_err(invalid)?
        };
        Ok(Fetched { response, document })
    }

    /// Sends a start request with that body.
    pub(crate) async fn start(&self, edition: Edition, body: &str) -> Result<HttpResponse, String> {
        let mut request = with(self.bare(Method::POST, &Self::events(edition)), "metadata", "true");
        request.body = body.to_owned().into();
        self.send(&request).await
    }
}

/// The request with one more header field, whose name and value are constants.
pub(crate) fn with(request: Request, name: &'static str, value: &'static str) -> Request {
    request.with(HeaderName::from_static(name), HeaderValue::from_static(value))
}

/// The members of a document that are events.
pub(crate) fn events_of(document: &Value) -> &[Value] {
    document.get("Events").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text member of an event; empty if there is none.
pub(crate) fn text<'a>(event: &'a Value, member: &str) -> &'a str {
    event.get(member).and_then(Value::as_str).unwrap_or_default()
}
