//! Requests to the API server.
//!
//! What may pass (nobody there, 408, 429, 5xx) is tried again for as long as whoever asks has time. A token that was refused is
//! read anew, because tokens are renewed; after a few times it is refused for good. Everything else is an answer.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forewarn_client::backoff::Backoff;
use forewarn_client::http::{
    HeaderValue, HttpClient, HttpResponse, Limits, Method, Request, Scheme, Trust, Url, header,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::hands::event::plain;
use crate::hands::{Hands, aside};

/// How long an answer may take, and how long it may be.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(20), body_bytes: 32 * 1024 * 1024 };

/// Bytes of a token.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// How often a token may be refused.
const REFUSALS_MAX: u32 = 3;

/// Characters of what the API server says.
const MESSAGE_CHARS_MAX: usize = 300;

/// An API server.
pub(super) struct Api<'a> {
    line: HttpClient,
    /// Paths begin with it.
    prefix: String,
    /// None where it would be sent in the clear.
    token_file: Option<PathBuf>,
    backoff: Backoff,
    /// Between two looks at something that changes by itself.
    looks: Backoff,
    /// What is waited for.
    pub(super) waits: &'a mut String,
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    /// What is null goes, what is there takes the place of what was (RFC 7386).
    Merge,
    /// Likewise, but lists that have a key are merged by it.
    Strategic,
}

impl Patch {
    const fn content_type(self) -> HeaderValue {
        match self {
            Self::Merge => HeaderValue::from_static("application/merge-patch+json"),
            Self::Strategic => HeaderValue::from_static("application/strategic-merge-patch+json"),
        }
    }
}

impl<'a> Api<'a> {
    pub(super) fn new(
        server: Url,
        trust: Arc<Trust>,
        token_file: PathBuf,
        hands: &Hands,
        waits: &'a mut String,
    ) -> Self {
        let prefix = server.target().trim_end_matches('/').to_owned();
        let token_file = match server.scheme() {
            Scheme::Https => Some(token_file),
            Scheme::Http => None,
        };
        let (first, _) = hands.pauses;
        let look = first.saturating_mul(2);
        let looks = Backoff::by_chance(look, look);
        Self {
            line: HttpClient::new(server, trust),
            prefix,
            token_file,
            backoff: hands.backoff(),
            looks,
            waits,
        }
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<HttpResponse, String> {
        self.ask(Method::GET, path, None, is_passing).await
    }

    pub(super) async fn patch(
        &mut self,
        path: &str,
        patch: Patch,
        body: &Value,
    ) -> Result<HttpResponse, String> {
        self.ask(Method::PATCH, path, Some((patch.content_type(), body)), is_passing).await
    }

    /// Whatever is answered is an answer, budgets that refuse included.
    pub(super) async fn post(&mut self, path: &str, body: &Value) -> Result<HttpResponse, String> {
        let json = HeaderValue::from_static("application/json");
        self.ask(Method::POST, path, Some((json, body)), |_| false).await
    }

    /// Waits for a moment, for something that changes by itself.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.looks.pause(None)).await;
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<(HeaderValue, &Value)>,
        is_passing: fn(u16) -> bool,
    ) -> Result<HttpResponse, String> {
        let mut request = Request::new(method, format!("{}{path}", self.prefix), Vec::new());
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((content_type, body)) = body {
            request.headers.insert(header::CONTENT_TYPE, content_type);
            request.body = body.to_string().into();
        }
        let mut refusals = 0;
        loop {
            if let Some(file) = &self.token_file {
                request.headers.insert(header::AUTHORIZATION, token(file.clone()).await?);
            }
            let wish = match self.line.send(&request, LIMITS).await {
                Ok(answer) if answer.status == 401 => {
                    refusals += 1;
                    if refusals >= REFUSALS_MAX {
                        return Err(self.refused(&answer, "is it who it says it is? see `token_file`"));
                    }
                    "the API server does not take the token".clone_into(self.waits);
                    None
                }
                Ok(answer) if is_passing(answer.status) => {
                    *self.waits = told(&answer);
                    answer.header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs)
                }
                Ok(answer) => {
                    self.backoff.reset();
                    return Ok(answer);
                }
                Err(trouble) => {
                    *self.waits = format!("the API server {trouble}");
                    None
                }
            };
            tokio::time::sleep(self.backoff.pause(wish)).await;
        }
    }

    /// An answer that is none of those which were expected.
    pub(super) fn refused(&mut self, answer: &HttpResponse, hint: &str) -> String {
        self.waits.clear();
        let told = told(answer);
        match answer.status {
            403 => format!(
                "{told}\n  hint: the role of the service account lacks it; see deploy/kubernetes/daemonset.yaml"
            ),
            _ if hint.is_empty() => told,
            _ => format!("{told}\n  hint: {hint}"),
        }
    }
}

/// What may be otherwise in a moment.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// What the API server has answered, in its own words.
pub(super) fn told(answer: &HttpResponse) -> String {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        message: String,
    }
    let status = answer.status;
    let said =
        serde_json::from_slice::<Status>(&answer.body).map(|status| status.message).unwrap_or_default();
    let said: String = plain(&said).chars().take(MESSAGE_CHARS_MAX).collect();
    if said.is_empty() {
        return format!("the API server answers {status}");
    }
    format!("the API server answers {status}: {said}")
}

/// What an answer holds.
pub(super) fn read<T: DeserializeOwned>(answer: &HttpResponse) -> Result<T, String> {
    serde_json::from_slice(&answer.body)
        .map_err(|problem| format!("the API server is not understood: {problem}"))
}

async fn token(file: PathBuf) -> Result<HeaderValue, String> {
    aside(move || {
        let text = read_token(&file).map_err(|problem| {
            format!("{}: {problem}\n  hint: is there a service account? see `token_file`", file.display())
        })?;
        let value = HeaderValue::from_str(&format!("Bearer {}", text.trim()));
        let mut value = value.map_err(|_| format!("{}: not a token", file.display()))?;
        value.set_sensitive(true);
        Ok(value)
    })
    .await
}

fn read_token(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(TOKEN_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
