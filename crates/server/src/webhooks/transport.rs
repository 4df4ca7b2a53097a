//! HTTP client of a webhook: deadline of a request, and meaning of the response.
//!
//! The connection stays open only while there is more to send: an idle one may occupy the receiver's only slot.
//! Redirects are not followed: the receiver at this address confirmed the subscription, no other. Errors contain
//! neither the query of the URL nor the body of a request.

use std::sync::Arc;
use std::time::Duration;

use forewarn_http_client::header::{HeaderMap, RETRY_AFTER};
use forewarn_http_client::{HttpResponse, Limits, Request, Trust, Url};

use super::backoff::FailureKind;

/// Deadline of a response, connecting included.
const RESPONSE_MAX: Duration = Duration::from_secs(30);

/// Limits of a request. A longer response body has no use here.
const LIMITS: Limits = Limits {
    connect: Duration::MAX,
    answer: RESPONSE_MAX,
    body_bytes: forewarn_control::push::VALIDATION_BYTES_MAX,
};

/// Reason why a delivery or a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    /// The connection or the TLS handshake failed.
    #[error("receiver is unreachable: {0}")]
    Unreachable(String),
    /// The deadline has passed.
    #[error("no response within {} seconds", RESPONSE_MAX.as_secs())]
    Timeout,
    /// The status is not 2xx.
    #[error("receiver answered {status}{}", meaning(*.status))]
    Rejected {
        /// The status of the response.
        status: u16,
        /// The pause in `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The receiver did not confirm the subscription.
    #[error("subscription not confirmed: {0}")]
    Unconfirmed(&'static str),
}

/// Explanation of a status.
fn meaning(status: u16) -> &'static str {
    match status {
        300..400 => ", and redirects are not followed",
        410 => ": the subscription is gone",
        _ => "",
    }
}

impl DeliveryError {
    fn invalid_request() -> Self {
        Self::Unreachable("the request or the response is invalid".to_owned())
    }

    pub(super) fn failure(&self) -> FailureKind {
        match self {
            Self::Rejected { status: 410, .. } => FailureKind::Gone,
            Self::Rejected { retry_after: Some(pause), .. } => FailureKind::RetryAfter(*pause),
            Self::Rejected { retry_after: None, .. }
            | Self::Unreachable(_)
            | Self::Timeout
            | Self::Unconfirmed(_) => FailureKind::Temporary,
        }
    }
}

impl From<forewarn_http_client::HttpError> for DeliveryError {
    fn from(error: forewarn_http_client::HttpError) -> Self {
        use forewarn_http_client::HttpError as Why;
        match error {
            Why::TimedOut(_) => Self::Timeout,
            Why::Unreachable(why) | Why::InvalidResponse(why) => Self::Unreachable(why),
            Why::BodyTooLarge(_) | Why::InvalidRequest(_) => Self::invalid_request(),
        }
    }
}

/// Returns an error unless the status is 2xx.
pub(super) fn check(response: &HttpResponse) -> Result<(), DeliveryError> {
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    Err(DeliveryError::Rejected { status: response.status, retry_after: retry_after(&response.headers) })
}

/// The pause in `Retry-After`: a number of seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = forewarn_imds::parse_date(text)?;
    Some(at.since(crate::clock::wall()))
}

/// HTTP client of one webhook.
#[derive(Debug)]
pub(super) struct WebhookClient(forewarn_http_client::HttpClient);

impl WebhookClient {
    pub(super) fn new(url: &Url, trust: Arc<Trust>) -> Self {
        Self(forewarn_http_client::HttpClient::new(url.clone(), trust))
    }

    /// Sends a request and returns the response, within [`RESPONSE_MAX`].
    pub(super) async fn send(&mut self, request: &Request) -> Result<HttpResponse, DeliveryError> {
        Ok(self.0.send_ignoring_body(request, LIMITS).await?)
    }

    pub(super) fn close(&mut self) {
        self.0.disconnect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_http_client::Bytes;

    fn refused(status: u16, retry: Option<&str>) -> DeliveryError {
        let mut headers = HeaderMap::new();
        retry.map(|text| headers.insert(RETRY_AFTER, text.parse().unwrap()));
        check(&HttpResponse { status, headers, body: Bytes::new() }).unwrap_err()
    }

    #[test]
    fn only_a_2xx_status_is_a_success() {
        for status in [200, 201, 202, 204, 299] {
            assert!(check(&HttpResponse { status, headers: HeaderMap::new(), body: Bytes::new() }).is_ok());
        }
        assert_eq!(refused(301, None).to_string(), "receiver answered 301, and redirects are not followed");
        assert_eq!(refused(410, None).to_string(), "receiver answered 410: the subscription is gone");
        assert_eq!(
            (refused(503, None).to_string().as_str(), refused(410, Some("5")).failure()),
            ("receiver answered 503", FailureKind::Gone)
        );
    }

    #[test]
    fn a_retry_after_is_a_number_of_seconds_or_a_moment() {
        let pause = |text: &str| refused(429, Some(text)).failure();
        assert_eq!(pause("120"), FailureKind::RetryAfter(Duration::from_secs(120)));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:00 GMT"), FailureKind::RetryAfter(Duration::ZERO));
        assert!(
            matches!(pause("Sat, 21 Oct 2090 07:28:00 GMT"), FailureKind::RetryAfter(long) if long > Duration::from_hours(24))
        );
        for wrong in ["", "soon", "-5", "1.5"] {
            assert_eq!(pause(wrong), FailureKind::Temporary, "{wrong}");
        }
    }

    #[test]
    fn http_errors_become_delivery_errors() {
        use forewarn_http_client::HttpError as Why;
        let converted = |why: Why| {
            let error = DeliveryError::from(why);
            (error.to_string(), error.failure())
        };
        let temporary = |text: &str| (text.to_owned(), FailureKind::Temporary);
        assert_eq!(converted(Why::TimedOut(RESPONSE_MAX)), temporary("no response within 30 seconds"));
        assert_eq!(converted(Why::Unreachable("x".to_owned())), temporary("receiver is unreachable: x"));
        assert_eq!(converted(Why::InvalidResponse("x".to_owned())), temporary("receiver is unreachable: x"));
        let invalid = converted(Why::InvalidRequest("x".to_owned()));
        assert_eq!(invalid, temporary("receiver is unreachable: the request or the response is invalid"));
    }
}
