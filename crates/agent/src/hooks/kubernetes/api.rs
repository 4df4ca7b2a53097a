//! Requests to the Kubernetes API server.
//!
//! Temporary errors (no connection, 408, 429, 5xx) are retried within the time limit of the hook. After a 401 the token
//! is read again, because tokens are rotated; after a few rejections the request fails. All other responses are
//! returned to the caller.

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

use crate::hooks::event::plain;
use crate::hooks::{HookRuntime, run_blocking};

/// Limits of the time and the size of a response.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(20), body_bytes: 32 * 1024 * 1024 };

/// Size limit of a token.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Limit of rejections of the token.
const REJECTIONS_MAX: u32 = 3;

/// Limit of a message of the API server in an error.
const MESSAGE_CHARS_MAX: usize = 300;

/// A client of the API server.
pub(super) struct Api<'a> {
    client: HttpClient,
    /// Prefix of all paths.
    prefix: String,
    /// The token file; `None` without TLS, so that no token is sent in plain text.
    token_file: Option<PathBuf>,
    backoff: Backoff,
    /// Pauses between two polls of an object.
    poll_pauses: Backoff,
    /// The condition that is being waited for, for error messages.
    pub(super) pending_condition: &'a mut String,
}

/// The semantics of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    /// JSON merge patch (RFC 7386).
    Merge,
    /// Strategic merge patch: lists with a key are merged by that key.
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
        runtime: &HookRuntime,
        pending_condition: &'a mut String,
    ) -> Self {
        let prefix = server.target().trim_end_matches('/').to_owned();
        let token_file = match server.scheme() {
            Scheme::Https => Some(token_file),
            Scheme::Http => None,
        };
        let (first, _) = runtime.pauses;
        let interval = first.saturating_mul(2);
        let poll_pauses = Backoff::with_random_seed(interval, interval);
        Self {
            client: HttpClient::new(server, trust),
            prefix,
            token_file,
            backoff: runtime.backoff(),
            poll_pauses,
            pending_condition,
        }
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<HttpResponse, String> {
        self.send(Method::GET, path, None, is_temporary).await
    }

    pub(super) async fn patch(
        &mut self,
        path: &str,
        patch: Patch,
        body: &Value,
    ) -> Result<HttpResponse, String> {
        self.send(Method::PATCH, path, Some((patch.content_type(), body)), is_temporary).await
    }

    /// Sends a POST. All responses are returned, including rejections by a disruption budget.
    pub(super) async fn post(&mut self, path: &str, body: &Value) -> Result<HttpResponse, String> {
        let json = HeaderValue::from_static("application/json");
        self.send(Method::POST, path, Some((json, body)), |_| false).await
    }

    /// Waits before the next poll of an object.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.poll_pauses.pause(None)).await;
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<(HeaderValue, &Value)>,
        is_temporary: fn(u16) -> bool,
    ) -> Result<HttpResponse, String> {
        let mut request = Request::new(method, format!("{}{path}", self.prefix), Vec::new());
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((content_type, body)) = body {
            request.headers.insert(header::CONTENT_TYPE, content_type);
            request.body = body.to_string().into();
        }
        let mut rejections = 0;
        loop {
            if let Some(file) = &self.token_file {
                request.headers.insert(header::AUTHORIZATION, token(file.clone()).await?);
            }
            let retry_after = match self.client.send(&request, LIMITS).await {
                Ok(response) if response.status == 401 => {
                    rejections += 1;
                    if rejections >= REJECTIONS_MAX {
                        return Err(self.unexpected(&response, "check `token_file`"));
                    }
                    "the API server rejects the token".clone_into(self.pending_condition);
                    None
                }
                Ok(response) if is_temporary(response.status) => {
                    *self.pending_condition = describe(&response);
                    response.header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs)
                }
                Ok(response) => {
                    self.backoff.reset();
                    return Ok(response);
                }
                Err(error) => {
                    *self.pending_condition = format!("the API server {error}");
                    None
                }
            };
            tokio::time::sleep(self.backoff.pause(retry_after)).await;
        }
    }

    /// Describes an unexpected response.
    pub(super) fn unexpected(&mut self, response: &HttpResponse, hint: &str) -> String {
        self.pending_condition.clear();
        let describe = describe(response);
        match response.status {
            403 => format!(
                "{describe}\n  hint: the role of the service account lacks a permission; see deploy/kubernetes/daemonset.yaml"
            ),
            _ if hint.is_empty() => describe,
            _ => format!("{describe}\n  hint: {hint}"),
        }
    }
}

/// True for temporary errors.
fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// Describes a response with the message of the API server.
pub(super) fn describe(response: &HttpResponse) -> String {
    #[derive(Deserialize)]
    struct ApiStatus {
        #[serde(default)]
        message: String,
    }
    let status = response.status;
    let message =
        serde_json::from_slice::<ApiStatus>(&response.body).map(|status| status.message).unwrap_or_default();
    let message: String = plain(&message).chars().take(MESSAGE_CHARS_MAX).collect();
    if message.is_empty() {
        return format!("the API server returned {status}");
    }
    format!("the API server returned {status}: {message}")
}

/// Parses the body of a response.
pub(super) fn read<T: DeserializeOwned>(response: &HttpResponse) -> Result<T, String> {
    serde_json::from_slice(&response.body)
        .map_err(|error| format!("invalid response of the API server: {error}"))
}

async fn token(file: PathBuf) -> Result<HeaderValue, String> {
    run_blocking(move || {
        let text = read_token(&file).map_err(|error| {
            format!("{}: {error}\n  hint: check the service account and `token_file`", file.display())
        })?;
        let value = HeaderValue::from_str(&format!("Bearer {}", text.trim()));
        let mut value = value.map_err(|_| format!("{}: invalid token", file.display()))?;
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
