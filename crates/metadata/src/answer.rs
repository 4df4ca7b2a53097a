//! Answers as bytes: a whole one at a time, so that it goes out in one write.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use arc_swap::Guard;
use forewarn_imds::{Edition, Problem, print_date};
use forewarn_types::Timestamp;

use crate::published::{Published, SERVER};
use crate::request::After;

/// What a request is answered.
pub(crate) enum Answer {
    /// The document.
    Document { published: Guard<Arc<Published>>, edition: Edition },
    /// The caller has the document already.
    NotModified { incarnation: u64 },
    /// A success that has nothing to tell.
    Done,
    /// A success that should tell something, and does not yet.
    NothingYet,
    /// Something else than the document, as JSON.
    Json(Cow<'static, str>),
    /// Something else than the document, as plain text.
    Text(String),
    /// No.
    Refused(Problem),
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// Whether an answer has a body at all: one to `HEAD` never has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Whole,
    HeadOnly,
}

const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Says that a body may come.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Answer {
    /// The number of its status.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Self::Document { .. } | Self::Done | Self::NothingYet | Self::Json(_) | Self::Text(_) => 200,
            Self::NotModified { .. } => 304,
            Self::Refused(problem) => problem.status(),
        }
    }

    /// Appends the whole answer to a buffer.
    pub(crate) fn write(&self, out: &mut Vec<u8>, now: Timestamp, after: After, shown: Shown) {
        let mut page = Page { out, now, after, shown };
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
        }
    }
}

/// The number and its name.
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

struct Page<'a> {
    out: &'a mut Vec<u8>,
    now: Timestamp,
    after: After,
    shown: Shown,
}

impl Page<'_> {
    fn plain(&mut self, status: &str, more: &str) {
        let head = format!("HTTP/1.1 {status}\r\nServer: {SERVER}\r\n{more}Date: ");
        self.finish(head.as_bytes(), b"");
    }

    fn problem(&mut self, problem: Problem) {
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

    fn with_body(&mut self, status: &str, content_type: &str, more: &str, body: &str) {
        if self.shown == Shown::HeadOnly {
            return self.plain(status, more);
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Server: {SERVER}\r\n{more}Date: "
        );
        self.finish(head.as_bytes(), body.as_bytes());
    }

    /// Everything from the date on.
    fn finish(&mut self, head: &[u8], body: &[u8]) {
        self.out.reserve(head.len() + body.len() + 64);
        self.out.extend_from_slice(head);
        push_date(self.out, self.now);
        self.out.extend_from_slice(match self.after {
            After::KeepAlive => b"\r\n\r\n",
            After::Close => b"\r\nConnection: close\r\n\r\n",
        });
        self.out.extend_from_slice(body);
    }
}

thread_local! {
    /// The last date that was printed, and its second. A second has one date, whichever clock shows it.
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

    fn written(answer: impl Into<Answer>, after: After, shown: Shown) -> String {
        let mut out = Vec::new();
        answer.into().write(&mut out, Timestamp::from_millis(1_767_225_600_999), after, shown);
        String::from_utf8(out).expect("text").replace(SERVER, "S")
    }

    #[test]
    fn a_problem_says_everything_it_knows() {
        let problem = Problem::MethodNotAllowed(forewarn_imds::Methods::GetPost);
        assert_eq!(
            written(problem, After::KeepAlive, Shown::Whole),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: application/json; charset=utf-8\r\n\
             Content-Length: 33\r\nServer: S\r\nAllow: GET, POST\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n\
             { \"error\": \"Method not allowed\" }"
        );
        assert_eq!(
            written(problem, After::Close, Shown::HeadOnly),
            "HTTP/1.1 405 Method Not Allowed\r\nServer: S\r\nAllow: GET, POST\r\n\
             Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n"
        );
        let busy = written(Problem::Unavailable { retry_after_seconds: 3 }, After::KeepAlive, Shown::Whole);
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
