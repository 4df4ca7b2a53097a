//! A line to a webhook: how long it may take to answer, and what its answer means.
//!
//! A connection is kept while there is more to say: one that nobody uses may be the only one that a webhook can have. Redirects
//! are not followed: who was asked whether it wants to be told was the one at this address. Nothing of the address behind `?`,
//! and nothing that is sent, is in any problem.

use std::sync::Arc;
use std::time::Duration;

use forewarn_http_client::header::{HeaderMap, RETRY_AFTER};
use forewarn_http_client::{HttpResponse, Limits, Request, Trust, Url};

use super::patience::Failure;

/// How long an answer may take, connecting included.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Of an answer that is longer, nothing is needed.
const LIMITS: Limits = Limits {
    connect: Duration::MAX,
    answer: ANSWER_MAX,
    body_bytes: forewarn_control::push::VALIDATION_BYTES_MAX,
};

/// Why somebody could not be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// There is nobody, or nobody to be believed.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It takes too long.
    #[error("it does not answer within {} seconds", ANSWER_MAX.as_secs())]
    Late,
    /// It does not take it.
    #[error("it answers {status}{}", said(*.status))]
    Refused {
        /// The status of its answer.
        status: u16,
        /// When it wants to be tried again.
        retry_after: Option<Duration>,
    },
    /// It has not said that it wants to be told.
    #[error("it does not say that it wants to be told: {0}")]
    Unwilling(&'static str),
}

/// What a status means here.
fn said(status: u16) -> &'static str {
    match status {
        300..400 => ", and redirects are not followed",
        410 => ": it says that it is gone for good",
        _ => "",
    }
}

impl Trouble {
    fn unaskable() -> Self {
        Self::Unreachable("nothing can be asked there".to_owned())
    }

    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Refused { status: 410, .. } => Failure::Gone,
            Self::Refused { retry_after: Some(wish), .. } => Failure::Busy(*wish),
            Self::Refused { retry_after: None, .. }
            | Self::Unreachable(_)
            | Self::Late
            | Self::Unwilling(_) => Failure::Passing,
        }
    }
}

impl From<forewarn_http_client::HttpError> for Trouble {
    fn from(trouble: forewarn_http_client::HttpError) -> Self {
        use forewarn_http_client::HttpError as Why;
        match trouble {
            Why::Late(_) => Self::Late,
            Why::Unreachable(why) | Why::Broken(why) => Self::Unreachable(why),
            Why::TooLong(_) | Why::Unaskable(_) => Self::unaskable(),
        }
    }
}

/// Whether it was taken.
pub(super) fn check(answer: &HttpResponse) -> Result<(), Trouble> {
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    Err(Trouble::Refused { status: answer.status, retry_after: retry_after(&answer.headers) })
}

/// When somebody wants to be tried again: in so many seconds, or at a moment.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = forewarn_imds::parse_date(text)?;
    Some(at.since(crate::clock::wall()))
}

/// A line to a webhook.
#[derive(Debug)]
pub(super) struct Line(forewarn_http_client::HttpClient);

impl Line {
    pub(super) fn new(url: &Url, trust: Arc<Trust>) -> Self {
        Self(forewarn_http_client::HttpClient::new(url.clone(), trust))
    }

    /// Sends a request, and waits for the answer, but not for long.
    pub(super) async fn send(&mut self, request: &Request) -> Result<HttpResponse, Trouble> {
        Ok(self.0.tell(request, LIMITS).await?)
    }

    /// There is nothing more to say for now.
    pub(super) fn hang_up(&mut self) {
        self.0.hang_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_http_client::Bytes;

    fn refused(status: u16, retry: Option<&str>) -> Trouble {
        let mut headers = HeaderMap::new();
        retry.map(|text| headers.insert(RETRY_AFTER, text.parse().unwrap()));
        check(&HttpResponse { status, headers, body: Bytes::new() }).unwrap_err()
    }

    #[test]
    fn two_hundred_and_something_is_taken_and_nothing_else() {
        for status in [200, 201, 202, 204, 299] {
            assert!(check(&HttpResponse { status, headers: HeaderMap::new(), body: Bytes::new() }).is_ok());
        }
        assert_eq!(refused(301, None).to_string(), "it answers 301, and redirects are not followed");
        assert_eq!(refused(410, None).to_string(), "it answers 410: it says that it is gone for good");
        assert_eq!(
            (refused(503, None).to_string().as_str(), refused(410, Some("5")).failure()),
            ("it answers 503", Failure::Gone)
        );
    }

    #[test]
    fn a_wish_is_a_number_of_seconds_or_a_moment() {
        let wish = |text: &str| refused(429, Some(text)).failure();
        assert_eq!(wish("120"), Failure::Busy(Duration::from_secs(120)));
        assert_eq!(wish("Wed, 21 Oct 2015 07:28:00 GMT"), Failure::Busy(Duration::ZERO));
        assert!(
            matches!(wish("Sat, 21 Oct 2090 07:28:00 GMT"), Failure::Busy(long) if long > Duration::from_hours(24))
        );
        for wrong in ["", "soon", "-5", "1.5"] {
            assert_eq!(wish(wrong), Failure::Passing, "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_on_the_way_is_told_in_the_words_of_webhooks() {
        use forewarn_http_client::HttpError as Why;
        let told = |why: Why| {
            let trouble = Trouble::from(why);
            (trouble.to_string(), trouble.failure())
        };
        let passing = |text: &str| (text.to_owned(), Failure::Passing);
        assert_eq!(told(Why::Late(ANSWER_MAX)), passing("it does not answer within 30 seconds"));
        assert_eq!(told(Why::Unreachable("x".to_owned())), passing("it cannot be reached: x"));
        assert_eq!(told(Why::Broken("x".to_owned())), passing("it cannot be reached: x"));
        let unaskable = told(Why::Unaskable("x".to_owned()));
        assert_eq!(unaskable, passing("it cannot be reached: nothing can be asked there"));
    }
}
