//! A request to a URL: to tell a chat, a pager, a load balancer.
//!
//! Any status from 200 to 299 says that it was taken. What may pass, such as a 503 or nobody at the other end, is tried again
//! until the time of the hook is up; what does not pass, such as a 404, is not. Redirects are not followed. Whatever may be a
//! secret, which is headers, bodies and all of the URL behind its host, is in no message.

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
use super::Setting;

/// `webhook = { url = "https://chat.example/hook", format = "text" }`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookWork {
    /// Where to: `http://…` or `https://…`. This or `url_file`.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// A file whose first line is the URL, for one that is itself a secret. Only its owner and their group may read it.
    #[serde(default)]
    pub(crate) url_file: Option<PathBuf>,
    /// What is sent.
    #[serde(default)]
    pub(crate) format: Format,
    /// With `format = "text"`: what is said, instead of a sentence of our own. Placeholders as in `template`.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// With `format = "template"`: the whole body. `{{event.type}}` is replaced by what a command finds in `EVENT_TYPE`,
    /// `{{forewarn.name}}` by `FOREWARN_NAME`, and so on; in JSON, they stand between quotes.
    #[serde(default)]
    pub(crate) template: Option<String>,
    /// With `format = "template"`: what the body is. Values are escaped for JSON if it is JSON, and for nothing else.
    #[serde(default)]
    pub(crate) content_type: Option<String>,
    /// Headers that are sent along.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A file with headers, a line `Name: value` for each, for those that are secret. Only its owner and their group may read
    /// it. It is read anew each time.
    #[serde(default)]
    pub(crate) headers_file: Option<PathBuf>,
    /// A file with the authorities (PEM) who alone may vouch for the other end; otherwise those of the system.
    #[serde(default)]
    pub(crate) ca: Option<PathBuf>,
}

/// What is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A CloudEvent 1.0 in structured mode (`application/cloudevents+json`), with the event as its data.
    #[default]
    CloudEvents,
    /// `{"text": "…"}`, as chats take it.
    Text,
    /// Something else altogether.
    Template,
}

/// What is in a URL or a header is shown to nobody.
impl std::fmt::Debug for WebhookWork {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WebhookWork").field("format", &self.format).finish_non_exhaustive()
    }
}

/// How long one try may take, and how much of an answer is read: nothing in it matters.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(15), body_bytes: 64 * 1024 };

/// Why it was not taken, and whether that may pass.
#[derive(Debug, PartialEq, Eq)]
struct Untaken {
    why: String,
    passes: bool,
    /// When it wants to be tried again.
    wish: Option<Duration>,
}

impl WebhookWork {
    pub(super) fn check(&self) -> Result<(), String> {
        match (&self.url, &self.url_file) {
            (Some(url), None) => {
                Url::parse(url).map_err(|problem| format!("`url` is none: {problem}"))?;
            }
            (None, Some(file)) => secrets::check_path("url_file", file)?,
            (None, None) | (Some(_), Some(_)) => {
                return Err("`webhook` needs one of `url` and `url_file`\n  hint: webhook = { url = \
                            \"https://chat.example/hook\", format = \"text\" }"
                    .to_owned());
            }
        }
        for (name, file) in [("headers_file", &self.headers_file), ("ca", &self.ca)] {
            file.as_ref().map_or(Ok(()), |file| secrets::check_path(name, file))?;
        }
        secrets::headers(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
        check_template(self)
    }

    /// `waits` says why it is not taken yet.
    pub(super) async fn perform(&self, setting: &Setting<'_>, waits: &mut String) -> Result<(), String> {
        let url = self.url().await?;
        let place = place(&url);
        let request = Request::post(url.target(), render(self, setting.job)?);
        let trust = self.ca.as_ref().map_or_else(|| Arc::clone(&setting.hands.trust), Trust::file);
        let mut line = HttpClient::new(url, trust);
        let mut backoff = setting.hands.backoff();
        loop {
            // A secret that was changed meanwhile is the right one.
            let request = Request { headers: self.all_headers().await?, ..request.clone() };
            let untaken = match line.tell(&request, LIMITS).await {
                Ok(answer) => taken(&answer),
                Err(trouble) => Err(failed(&trouble)),
            };
            let Err(Untaken { why, passes, wish }) = untaken else { return Ok(()) };
            let why = format!("{place} {why}");
            if !passes {
                waits.clear();
                return Err(why);
            }
            *waits = why;
            tokio::time::sleep(backoff.pause(wish)).await;
        }
    }

    async fn url(&self) -> Result<Url, String> {
        let text = match (&self.url, &self.url_file) {
            (Some(url), _) => url.clone(),
            (None, Some(file)) => secrets::first_line(file.clone()).await?,
            (None, None) => return Err("there is no URL".to_owned()),
        };
        Url::parse(&text).map_err(|problem| problem.to_string())
    }

    async fn all_headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_str(self.content_type());
        let content_type = content_type.map_err(|_| "`content_type` cannot be sent".to_owned())?;
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

/// Where it is, without what may be a secret: many a URL is one behind its host.
fn place(url: &Url) -> String {
    url.authority().to_owned()
}

fn taken(answer: &HttpResponse) -> Result<(), Untaken> {
    let status = answer.status;
    if (200..300).contains(&status) {
        return Ok(());
    }
    let passes = matches!(status, 408 | 425 | 429 | 500..=599);
    let hint = if (300..400).contains(&status) { ", and redirects are not followed" } else { "" };
    let wish = answer.header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
    Err(Untaken { why: format!("answers {status}{hint}"), passes, wish })
}

fn failed(trouble: &HttpError) -> Untaken {
    let passes = match trouble {
        HttpError::Unreachable(_) | HttpError::Late(_) | HttpError::Broken(_) => true,
        // It has answered, at too great length; and what cannot be asked now cannot be asked later.
        HttpError::TooLong(_) | HttpError::Unaskable(_) => false,
    };
    Untaken { why: trouble.to_string(), passes, wish: None }
}

/// A header, or why it is none.
fn header_of(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let unusable = |what: &str| format!("the {what} of the header {name:?} cannot be sent");
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable("name"))?;
    if matches!(
        header,
        header::HOST | header::CONTENT_LENGTH | header::TRANSFER_ENCODING | header::CONNECTION
    ) {
        return Err(format!("the header {name:?} is not yours to set"));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| unusable("value"))?;
    value.set_sensitive(true);
    Ok((header, value))
}
