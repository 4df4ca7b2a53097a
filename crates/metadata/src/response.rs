//! Responses as bytes. A response is written whole into one buffer, so that it goes out in one write.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use arc_swap::Guard;
use forewarn_imds::{Edition, RequestError, print_date};
use forewarn_types::{FaultStatus, Timestamp};

use crate::control_plane::RETRY_AFTER_SECONDS;
use crate::published::{PublishedDocument, SERVER};
use crate::request::ConnectionMode;

/// Response to a request.
pub(crate) enum Response {
    Document {
        published: Guard<Arc<PublishedDocument>>,
        edition: Edition,
    },
    /// The client already has the document.
    NotModified {
        incarnation: u64,
    },
    /// Success without a body.
    Done,
    /// Success with an empty JSON body, for the first request of a tenant.
    NothingYet,
    /// JSON body other than the document.
    Json(Cow<'static, str>),
    Text(String),
    Refused(RequestError),
    /// The answer of an injected fault.
    Fault(FaultStatus),
}

impl From<RequestError> for Response {
    fn from(problem: RequestError) -> Self {
        Self::Refused(problem)
    }
}

/// Selects if the body is written: a response to `HEAD` has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyMode {
    Whole,
    HeadOnly,
}

const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Interim response that lets the client send its body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Response {
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Self::Document { .. } | Self::Done | Self::NothingYet | Self::Json(_) | Self::Text(_) => 200,
            Self::NotModified { .. } => 304,
            Self::Refused(problem) => problem.status(),
            Self::Fault(status) => status.code(),
        }
    }

    /// Appends the whole response to a buffer.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        now: Timestamp,
        connection_mode: ConnectionMode,
        body_mode: BodyMode,
    ) {
        let mut page = ResponseWriter { out, now, connection_mode, body_mode };
        match self {
            Self::Document { published, edition } => {
                let prepared = published.prepared(*edition);
                page.finish(&prepared.head, &prepared.body);
            }
            Self::NotModified { incarnation } => {
                page.plain("304 Not Modified", &format!("ETag: \"{incarnation}\"\r\n"));
            }
            Self::Done => page.plain("200 OK", "Content-Length: 0\r\n"),
            Self::NothingYet => page.with_body("200 OK", JSON, "", ""),
            Self::Json(body) => page.with_body("200 OK", JSON, "", body),
            Self::Text(body) => page.with_body("200 OK", TEXT, "", body),
            Self::Refused(problem) => page.problem(*problem),
            Self::Fault(status) => page.fault(*status),
        }
    }
}

/// Status code with its reason phrase.
const fn status(number: u16) -> &'static str {
    match number {
        403 => "403 Forbidden",
        404 => "404 Not Found",
        405 => "405 Method Not Allowed",
        413 => "413 Content Too Large",
        414 => "414 URI Too Long",
        429 => "429 Too Many Requests",
        431 => "431 Request Header Fields Too Large",
        503 => "503 Service Unavailable",
        _ => "400 Bad Request",
    }
}

struct ResponseWriter<'a> {
    out: &'a mut Vec<u8>,
    now: Timestamp,
    connection_mode: ConnectionMode,
    body_mode: BodyMode,
}

impl ResponseWriter<'_> {
    fn plain(&mut self, status: &str, more: &str) {
        let head = format!("HTTP/1.1 {status}\r\nServer: {SERVER}\r\n{more}Date: ");
        self.finish(head.as_bytes(), b"");
    }

    fn problem(&mut self, problem: RequestError) {
        let mut more = String::new();
        if let Some(allow) = problem.allow() {
            more.push_str("Allow: ");
            more.push_str(allow);
            more.push_str("\r\n");
        }
        if let Some(seconds) = problem.retry_after_seconds() {
            write!(more, "Retry-After: {seconds}\r\n").expect("writing to a string does not fail");
        }
        self.with_body(status(problem.status()), JSON, &more, &problem.body());
    }

    /// The answer that this endpoint has for a status, or one in its style.
    fn fault(&mut self, status: FaultStatus) {
        let mut in_style = |line: &str, error: &str| {
            self.with_body(line, JSON, "", &format!(r#"{{ "error": "{error}" }}"#));
        };
        match status {
            FaultStatus::BadRequest => self.problem(RequestError::Malformed),
            FaultStatus::Unauthorized => in_style("401 Unauthorized", "Unauthorized"),
            FaultStatus::Forbidden => self.problem(RequestError::UnknownCaller),
            FaultStatus::NotFound => self.problem(RequestError::NotFound),
            FaultStatus::RequestTimeout => in_style("408 Request Timeout", "Request timeout"),
            FaultStatus::Gone => in_style("410 Gone", "Gone"),
            FaultStatus::TooManyRequests => {
                self.problem(RequestError::TooManyRequests { retry_after_seconds: RETRY_AFTER_SECONDS });
            }
            FaultStatus::InternalServerError => {
                in_style("500 Internal Server Error", "Internal server error");
            }
            FaultStatus::BadGateway => in_style("502 Bad Gateway", "Bad gateway"),
            FaultStatus::ServiceUnavailable => {
                self.problem(RequestError::Unavailable { retry_after_seconds: RETRY_AFTER_SECONDS });
            }
            FaultStatus::GatewayTimeout => in_style("504 Gateway Timeout", "Gateway timeout"),
        }
    }

    fn with_body(&mut self, status: &str, content_type: &str, more: &str, body: &str) {
        if self.body_mode == BodyMode::HeadOnly {
            return self.plain(status, more);
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Server: {SERVER}\r\n{more}Date: "
        );
        self.finish(head.as_bytes(), body.as_bytes());
    }

    /// Writes the date, the rest of the head, and the body.
    fn finish(&mut self, head: &[u8], body: &[u8]) {
        self.out.reserve(head.len() + body.len() + 64);
        self.out.extend_from_slice(head);
        push_date(self.out, self.now);
        self.out.extend_from_slice(match self.connection_mode {
            ConnectionMode::KeepAlive => b"\r\n\r\n",
            ConnectionMode::Close => b"\r\nConnection: close\r\n\r\n",
        });
        self.out.extend_from_slice(body);
    }
}

thread_local! {
    /// Last printed date with its second. The text depends on the second alone, whichever clock is used.
    static PRINTED: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
}

fn push_date(out: &mut Vec<u8>, now: Timestamp) {
    PRINTED.with_borrow_mut(|(second, date)| {
        if *second != now.seconds() {
            (*second, *date) = (now.seconds(), print_date(now));
        }
        out.extend_from_slice(date.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        response: impl Into<Response>,
        connection_mode: ConnectionMode,
        body_mode: BodyMode,
    ) -> String {
        let mut out = Vec::new();
        response.into().write(
            &mut out,
            Timestamp::from_millis(1_767_225_600_999),
            connection_mode,
            body_mode,
        );
        String::from_utf8(out).expect("text").replace(SERVER, "S")
    }

    #[test]
    fn a_rejection_has_its_headers_and_body() {
        let problem = RequestError::MethodNotAllowed(forewarn_imds::Methods::GetPost);
        assert_eq!(
            written(problem, ConnectionMode::KeepAlive, BodyMode::Whole),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: application/json; charset=utf-8\r\n\
             Content-Length: 33\r\nServer: S\r\nAllow: GET, POST\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n\
             { \"error\": \"Method not allowed\" }"
        );
        assert_eq!(
            written(problem, ConnectionMode::Close, BodyMode::HeadOnly),
            "HTTP/1.1 405 Method Not Allowed\r\nServer: S\r\nAllow: GET, POST\r\n\
             Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n"
        );
        let busy = written(
            RequestError::Unavailable { retry_after_seconds: 3 },
            ConnectionMode::KeepAlive,
            BodyMode::Whole,
        );
        assert!(
            busy.starts_with("HTTP/1.1 503 Service Unavailable\r\n")
                && busy.contains("\r\nRetry-After: 3\r\n")
        );
    }

    #[test]
    fn a_date_follows_the_clock_in_both_directions() {
        let date = |seconds: i64| {
            let mut out = Vec::new();
            push_date(&mut out, Timestamp::from_millis(seconds * 1_000));
            String::from_utf8(out).expect("text")
        };
        assert_eq!(date(60), "Thu, 01 Jan 1970 00:01:00 GMT");
        assert_eq!(date(61), "Thu, 01 Jan 1970 00:01:01 GMT");
        assert_eq!(date(60), "Thu, 01 Jan 1970 00:01:00 GMT");
    }
}
