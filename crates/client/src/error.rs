//! What may go wrong while asking, in words that say what to do about it.

use std::time::Duration;

use forewarn_imds::{Unreadable, parse_date};
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::http::{HttpError, HttpResponse};

/// Characters of what a server says that are repeated.
const WORDS_MAX: usize = 300;

/// Why something was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nobody.
    #[error("{endpoint} {why}")]
    Unreachable {
        /// Who was asked.
        endpoint: String,
        /// What happened.
        why: HttpError,
    },
    /// It takes too long.
    #[error("{endpoint} does not answer within {} seconds", limit.as_secs_f32())]
    Late {
        /// Who was asked.
        endpoint: String,
        /// How long it was given.
        limit: Duration,
    },
    /// It does not want to now, and may later: 410, 429, or something of its own (5xx).
    #[error("the endpoint answers {status} for now: {message}")]
    Busy {
        /// The status of its answer.
        status: u16,
        /// What it says.
        message: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It does not want to.
    #[error("the endpoint refuses with {status}: {message}{}", hint(message))]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What it says.
        message: String,
    },
    /// What it says is no document.
    #[error("the endpoint answers with something that is no document")]
    Unreadable(#[from] Unreadable),
    /// Something else is at that address.
    #[error(
        "{endpoint} is not an endpoint of Scheduled Events: {why}\n  hint: what is configured may be some other service's address"
    )]
    NotAnEndpoint {
        /// Who was asked.
        endpoint: String,
        /// What it answers.
        why: String,
    },
    /// Only Forewarn can tell that.
    #[error("this endpoint does not tell the names of a machine's peers: only Forewarn does")]
    NotOffered,
}

impl Error {
    pub(crate) fn of(endpoint: &Endpoint, trouble: HttpError) -> Self {
        let endpoint = endpoint.to_string();
        match trouble {
            HttpError::Late(limit) => Self::Late { endpoint, limit },
            HttpError::TooLong(bytes) => Self::Unreadable(Unreadable::TooLong(bytes.saturating_add(1))),
            why @ (HttpError::Unreachable(_) | HttpError::Broken(_) | HttpError::Unaskable(_)) => {
                Self::Unreachable { endpoint, why }
            }
        }
    }

    /// What an answer that is none means.
    pub(crate) fn refusal(endpoint: &Endpoint, answer: &HttpResponse) -> Self {
        let (status, message) = (answer.status, words(answer));
        match status {
            410 | 429 | 500..=599 => Self::Busy { status, message, retry_after: retry_after(answer) },
            400..=403 | 405..=499 => Self::Refused { status, message },
            _ => {
                let why = format!("it answers {status}: {message}");
                Self::NotAnEndpoint { endpoint: endpoint.to_string(), why }
            }
        }
    }

    /// When the other side wants to be asked again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Busy { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// What to do about what a server says.
fn hint(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let says = |word: &str| message.contains(word);
    if says("metadata header") {
        "\n  hint: every request has `Metadata: true`; something on the way takes it off, probably a proxy"
    } else if says("x-forwarded-for") || says("forwarded") || says("via ") || says("x-real-ip") {
        "\n  hint: there is a proxy on the way; this address has to be reached directly"
    } else if says("api-version") {
        "\n  hint: the endpoint knows none of the editions from 2017-03-01 to 2020-07-01; ask GET /metadata/versions"
    } else if says("not a known virtual machine") {
        "\n  hint: the server knows no machine at this address; look at `forewarn vm list`"
    } else if says("host must be") {
        "\n  hint: write the endpoint with an address instead of a name"
    } else {
        ""
    }
}

/// What a server says, fit to be shown: its `error`, or the beginning of the body.
pub(crate) fn words(answer: &HttpResponse) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let said = serde_json::from_str::<Value>(&text).ok();
    let error = said.as_ref().and_then(|said| said.get("error")).and_then(Value::as_str);
    let shown = error.unwrap_or(&text).trim();
    if shown.is_empty() {
        return "(nothing more)".to_owned();
    }
    shown.chars().take(WORDS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// When somebody wants to be asked again: in so many seconds, or at a moment of its own clock.
fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    let text = answer.header("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = answer.header("date").and_then(parse_date)?;
    Some(parse_date(text)?.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Bytes, HeaderMap};

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> HttpResponse {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        HttpResponse { status, headers: map, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn told(answer: &HttpResponse) -> String {
        Error::refusal(&Endpoint::well_known(), answer).to_string()
    }

    #[test]
    fn problems_with_header_version_and_proxy_have_hints() {
        let header = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
        assert!(told(&answer(400, &[], header)).contains("hint: every request has `Metadata: true`"));
        let version =
            r#"{ "error": "Bad request. api-version is invalid", "newest-versions": [ "2031-01-01" ] }"#;
        assert!(told(&answer(400, &[], version)).contains("hint: the endpoint knows none of the editions"));
        let proxy = r#"{ "error": "Bad request: X-Forwarded-For is not accepted" }"#;
        assert!(told(&answer(400, &[], proxy)).contains("hint: there is a proxy on the way"));
        assert_eq!(
            told(&answer(400, &[], r#"{"error":"EventId is no GUID"}"#)),
            "the endpoint refuses with 400: EventId is no GUID"
        );
    }

    #[test]
    fn another_service_is_told_from_one_that_is_busy() {
        assert!(told(&answer(404, &[], "<html>\u{7}nothing")).contains("it answers 404: <html> nothing"));
        assert!(told(&answer(302, &[], "")).contains("it answers 302: (nothing more)"));
        assert_eq!(told(&answer(410, &[], "")), "the endpoint answers 410 for now: (nothing more)");
        assert!(told(&answer(200, &[], &"x".repeat(1000))).len() < 500);
    }

    #[test]
    fn a_wish_is_a_number_of_seconds_or_a_moment_of_the_servers_clock() {
        let wish = |headers: &[(&'static str, &str)]| {
            Error::refusal(&Endpoint::well_known(), &answer(429, headers, "")).retry_after()
        };
        assert_eq!(wish(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        let date = ("date", "Wed, 24 Jan 2018 21:20:44 GMT");
        let moment = ("retry-after", "Wed, 24 Jan 2018 21:20:54 GMT");
        assert_eq!(wish(&[moment, date]), Some(Duration::from_secs(10)));
        for wrong in ["", "soon", "-5", "1.5"] {
            assert_eq!(wish(&[("retry-after", wrong), date]), None, "{wrong}");
        }
        assert_eq!(wish(&[moment]), None, "whose clock?");
    }
}
