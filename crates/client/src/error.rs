//! Errors of requests to an endpoint, with hints.

use std::time::Duration;

use forewarn_imds::{Unreadable, parse_date};
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::http::{HttpError, HttpResponse};

/// Limit of a server message in an error.
const MESSAGE_CHARS_MAX: usize = 300;

/// An error of a request to an endpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection.
    #[error("{endpoint} {reason}")]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// The error of the connection.
        reason: HttpError,
    },
    /// No response in time.
    #[error("{endpoint} did not respond within {} seconds", limit.as_secs_f32())]
    TimedOut {
        /// The endpoint.
        endpoint: String,
        /// The timeout.
        limit: Duration,
    },
    /// A temporary error: 410, 429 or 5xx.
    #[error("the endpoint is temporarily unavailable, status {status}: {message}")]
    Busy {
        /// The status of the response.
        status: u16,
        /// The message of the endpoint.
        message: String,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The endpoint rejected the request.
    #[error("the endpoint rejected the request with status {status}: {message}{}", hint(message))]
    Rejected {
        /// The status of the response.
        status: u16,
        /// The message of the endpoint.
        message: String,
    },
    /// The response is not a valid document.
    #[error("the endpoint returned an invalid document")]
    Unreadable(#[from] Unreadable),
    /// Another service listens at the address.
    #[error(
        "{endpoint} is not a Scheduled Events endpoint: {reason}\n  hint: check the configured address: another service listens there"
    )]
    NotAnEndpoint {
        /// The endpoint.
        endpoint: String,
        /// The unexpected response.
        reason: String,
    },
    /// Only Forewarn supports this request.
    #[error("this endpoint does not list the peers of a machine: only Forewarn does")]
    Unsupported,
}

impl Error {
    pub(crate) fn of(endpoint: &Endpoint, error: HttpError) -> Self {
        let endpoint = endpoint.to_string();
        match error {
            HttpError::TimedOut(limit) => Self::TimedOut { endpoint, limit },
            HttpError::BodyTooLarge(bytes) => Self::Unreadable(Unreadable::TooLong(bytes.saturating_add(1))),
            reason @ (HttpError::Unreachable(_)
            | HttpError::InvalidResponse(_)
            | HttpError::InvalidRequest(_)) => Self::Unreachable { endpoint, reason },
        }
    }

    /// Converts an error response.
    pub(crate) fn rejection(endpoint: &Endpoint, response: &HttpResponse) -> Self {
        let (status, message) = (response.status, message_of(response));
        match status {
            410 | 429 | 500..=599 => Self::Busy { status, message, retry_after: retry_after(response) },
            400..=403 | 405..=499 => Self::Rejected { status, message },
            _ => {
                let reason = format!("status {status}: {message}");
                Self::NotAnEndpoint { endpoint: endpoint.to_string(), reason }
            }
        }
    }

    /// The value of `Retry-After`, if the endpoint sent one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Busy { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// A hint for a known server message.
fn hint(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let says = |word: &str| message.contains(word);
    if says("metadata header") {
        "\n  hint: every request has `Metadata: true`; something on the path removes it, probably a proxy"
    } else if says("x-forwarded-for") || says("forwarded") || says("via ") || says("x-real-ip") {
        "\n  hint: a proxy is on the path; connect to this address directly"
    } else if says("api-version") {
        "\n  hint: the endpoint supports none of the editions from 2017-03-01 to 2020-07-01; see GET /metadata/versions"
    } else if says("not a known virtual machine") {
        "\n  hint: no machine has this address, or the name after /vm/ in the endpoint; see `forewarn vm ls`"
    } else if says("host must be") {
        "\n  hint: use an IP address instead of a host name"
    } else {
        ""
    }
}

/// The message of an error response: its `error` field, or the beginning of the body.
pub(crate) fn message_of(response: &HttpResponse) -> String {
    let text = String::from_utf8_lossy(&response.body);
    let value = serde_json::from_str::<Value>(&text).ok();
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(Value::as_str);
    let shown = error.unwrap_or(&text).trim();
    if shown.is_empty() {
        return "(no message)".to_owned();
    }
    shown.chars().take(MESSAGE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The value of `Retry-After`: seconds, or a date that is compared with `Date`.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let text = response.header("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = response.header("date").and_then(parse_date)?;
    Some(parse_date(text)?.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Bytes, HeaderMap};

    fn response(status: u16, headers: &[(&'static str, &str)], body: &str) -> HttpResponse {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        HttpResponse { status, headers: map, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn describe(response: &HttpResponse) -> String {
        Error::rejection(&Endpoint::well_known(), response).to_string()
    }

    /// promise: A6
    #[test]
    fn problems_with_header_version_and_proxy_have_hints() {
        let header = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
        assert!(describe(&response(400, &[], header)).contains("hint: every request has `Metadata: true`"));
        let version =
            r#"{ "error": "Bad request. api-version is invalid", "newest-versions": [ "2031-01-01" ] }"#;
        assert!(
            describe(&response(400, &[], version))
                .contains("hint: the endpoint supports none of the editions")
        );
        let proxy = r#"{ "error": "Bad request: X-Forwarded-For is not accepted" }"#;
        assert!(describe(&response(400, &[], proxy)).contains("hint: a proxy is on the path"));
        assert_eq!(
            describe(&response(400, &[], r#"{"error":"EventId is no GUID"}"#)),
            "the endpoint rejected the request with status 400: EventId is no GUID"
        );
    }

    #[test]
    fn another_service_is_distinguished_from_a_busy_one() {
        assert!(describe(&response(404, &[], "<html>\u{7}nothing")).contains("status 404: <html> nothing"));
        assert!(describe(&response(302, &[], "")).contains("status 302: (no message)"));
        assert_eq!(
            describe(&response(410, &[], "")),
            "the endpoint is temporarily unavailable, status 410: (no message)"
        );
        assert!(describe(&response(200, &[], &"x".repeat(1000))).len() < 500);
    }

    #[test]
    fn a_wish_is_a_number_of_seconds_or_a_moment_of_the_servers_clock() {
        let retry_after = |headers: &[(&'static str, &str)]| {
            Error::rejection(&Endpoint::well_known(), &response(429, headers, "")).retry_after()
        };
        assert_eq!(retry_after(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        let date = ("date", "Wed, 24 Jan 2018 21:20:44 GMT");
        let moment = ("retry-after", "Wed, 24 Jan 2018 21:20:54 GMT");
        assert_eq!(retry_after(&[moment, date]), Some(Duration::from_secs(10)));
        for wrong in ["", "soon", "-5", "1.5"] {
            assert_eq!(retry_after(&[("retry-after", wrong), date]), None, "{wrong}");
        }
        assert_eq!(retry_after(&[moment]), None, "a date needs the server's clock");
    }
}
