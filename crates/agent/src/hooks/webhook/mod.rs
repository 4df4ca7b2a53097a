//! Hooks that send a request to a URL: a chat, a pager, a load balancer.
//!
//! Any status from 200 to 299 means success. Temporary errors, such as 503 or a refused connection, are retried within
//! the time limit of the hook; others, such as 404, are not. Redirects are not followed. Headers, bodies and the path
//! of the URL may be secret and appear in no message.

mod body;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forewarn_client::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpResponse, Limits, Request, Trust, Url,
    header,
};
use serde::Deserialize;

use self::body::{check_template, render};
use super::{HookCall, check_path};

/// `webhook = { url = "https://chat.example/hook", format = "text" }`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookWork {
    /// The URL: `http://…` or `https://…`. Exclusive with `url_file`.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// A file whose first line is the URL, for secret URLs. Only its owner and group may read it.
    #[serde(default)]
    pub(crate) url_file: Option<PathBuf>,
    /// The format of the body.
    #[serde(default)]
    pub(crate) format: Format,
    /// The message for `format = "text"`; `None` for a default message. Placeholders as in `template`.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// The body for `format = "template"`. `{{event.type}}` is replaced by the value of `EVENT_TYPE`,
    /// `{{forewarn.name}}` by that of `FOREWARN_NAME`, and so on; in JSON, placeholders stand between quotes.
    #[serde(default)]
    pub(crate) template: Option<String>,
    /// The content type for `format = "template"`. Values are escaped if it is JSON, and only then.
    #[serde(default)]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A file with a line `Name: value` for each secret header. Only its owner and group may read it. It is read for
    /// every request.
    #[serde(default)]
    pub(crate) headers_file: Option<PathBuf>,
    /// A file with the only trusted certificate authorities (PEM); `None` for those of the system.
    #[serde(default)]
    pub(crate) ca: Option<PathBuf>,
}

/// The format of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A CloudEvent 1.0 in structured mode (`application/cloudevents+json`), with the event as its data.
    #[default]
    CloudEvents,
    /// `{"text": "…"}`, as chats take it.
    Text,
    Template,
}

/// Hides the URL and the headers, which may be secret.
impl std::fmt::Debug for WebhookWork {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WebhookWork").field("format", &self.format).finish_non_exhaustive()
    }
}

/// Limits of one attempt. The body of a response is ignored.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(15), body_bytes: 64 * 1024 };

#[derive(Debug, PartialEq, Eq)]
struct DeliveryError {
    reason: String,
    is_temporary: bool,
    /// The value of `Retry-After`.
    retry_after: Option<Duration>,
}

impl WebhookWork {
    pub(super) fn errors(&self) -> Vec<String> {
        let url = match (&self.url, &self.url_file) {
            (Some(url), None) => Url::parse(url).map(drop).map_err(|error| format!("invalid `url`: {error}")),
            (None, Some(file)) => check_path("url_file", file),
            (None, None) | (Some(_), Some(_)) => {
                Err("`webhook` needs one of `url` and `url_file`\n  hint: webhook = { url = \
                     \"https://chat.example/hook\", format = \"text\" }"
                    .to_owned())
            }
        };
        let check_file =
            |name: &str, file: &Option<PathBuf>| file.as_ref().map_or(Ok(()), |file| check_path(name, file));
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let checks = [
            url,
            check_file("headers_file", &self.headers_file),
            check_file("ca", &self.ca),
            secrets::headers(headers).map(drop),
            check_template(self),
        ];
        checks.into_iter().filter_map(Result::err).collect()
    }

    /// Sends the request with retries. `waits` holds the last error.
    pub(super) async fn perform(&self, call: &HookCall<'_>, last_error: &mut String) -> Result<(), String> {
        let url = self.url().await?;
        let host = host(&url);
        let request = Request::post(url.target(), render(self, call.job)?);
        let trust = self.ca.as_ref().map_or_else(|| Arc::clone(&call.runtime.trust), Trust::file);
        let mut client = HttpClient::new(url, trust);
        let mut backoff = call.runtime.backoff();
        loop {
            // Secret files are read again, because they may have changed.
            let request = Request { headers: self.all_headers().await?, ..request.clone() };
            let attempt = match client.send_ignoring_body(&request, LIMITS).await {
                Ok(response) => check_response(&response),
                Err(error) => Err(delivery_error(&error)),
            };
            let Err(DeliveryError { reason, is_temporary, retry_after }) = attempt else { return Ok(()) };
            let reason = format!("{host} {reason}");
            if !is_temporary {
                last_error.clear();
                return Err(reason);
            }
            *last_error = reason;
            tokio::time::sleep(backoff.pause(retry_after)).await;
        }
    }

    async fn url(&self) -> Result<Url, String> {
        let text = match (&self.url, &self.url_file) {
            (Some(url), _) => url.clone(),
            (None, Some(file)) => secrets::first_line(file.clone()).await?,
            (None, None) => return Err("no URL configured".to_owned()),
        };
        Url::parse(&text).map_err(|error| error.to_string())
    }

    async fn all_headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_str(self.content_type());
        let content_type = content_type.map_err(|_| "invalid `content_type`".to_owned())?;
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.extend(secrets::headers(
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())),
        )?);
        if let Some(file) = &self.headers_file {
            headers.extend(secrets::header_file(file.clone()).await?);
        }
        Ok(headers)
    }

    fn content_type(&self) -> &str {
        match self.format {
            Format::CloudEvents => "application/cloudevents+json",
            Format::Text => "application/json",
            Format::Template => self.content_type.as_deref().unwrap_or("application/json"),
        }
    }
}

/// The host of a URL. The rest may be secret.
fn host(url: &Url) -> String {
    url.authority().to_owned()
}

fn check_response(response: &HttpResponse) -> Result<(), DeliveryError> {
    let status = response.status;
    if (200..300).contains(&status) {
        return Ok(());
    }
    let is_temporary = matches!(status, 408 | 425 | 429 | 500..=599);
    let hint = if (300..400).contains(&status) { "; redirects are not followed" } else { "" };
    let retry_after =
        response.header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
    Err(DeliveryError { reason: format!("returned {status}{hint}"), is_temporary, retry_after })
}

fn delivery_error(error: &HttpError) -> DeliveryError {
    let is_temporary = match error {
        HttpError::Unreachable(_) | HttpError::TimedOut(_) | HttpError::InvalidResponse(_) => true,
        // Permanent: the response was too long, or the request is invalid.
        HttpError::BodyTooLarge(_) | HttpError::InvalidRequest(_) => false,
    };
    DeliveryError { reason: error.to_string(), is_temporary, retry_after: None }
}

fn header_of(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let invalid = |what: &str| format!("invalid {what} of the header {name:?}");
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("name"))?;
    if matches!(
        header,
        header::HOST | header::CONTENT_LENGTH | header::TRANSFER_ENCODING | header::CONNECTION
    ) {
        return Err(format!("the header {name:?} is reserved"));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid("value"))?;
    value.set_sensitive(true);
    Ok((header, value))
}
