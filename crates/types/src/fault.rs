//! Faults that a test server injects: the answer that a caller gets instead of the usual one, as a text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::span::{parse_duration, show_duration};

/// Faults of one server.
pub const FAULTS_MAX: usize = 1_000;

/// Requests or deliveries that one fault applies to.
pub const FAULT_REQUESTS_MAX: u32 = 1_000_000;

/// The longest delay of an answer.
pub const SLOW_MAX: Duration = Duration::from_mins(10);

/// The longest time before `NotBefore` at which a hidden event becomes visible.
pub const HIDE_MAX: Duration = Duration::from_hours(24);

/// A fault: the answer that a caller gets. A text such as `500`, `hang` or `slow=2s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAnswer {
    /// A status, as a proxy in front of the server might send it.
    Status(FaultStatus),
    /// No answer, until the client gives up.
    Hang,
    /// The connection is reset.
    Reset,
    /// The body ends before the announced length.
    Truncated,
    /// 200 with an empty body.
    Empty,
    /// The answer comes after a delay.
    Slow(Duration),
    /// The document has an incarnation that is far too high.
    Jump,
    /// Scheduled events are not in the document until this time before their `NotBefore`.
    Hide(Duration),
    /// The message of a webhook is sent twice.
    Duplicate,
}

/// The status of an injected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum FaultStatus {
    BadRequest = 400,
    Unauthorized = 401,
    Forbidden = 403,
    NotFound = 404,
    RequestTimeout = 408,
    Gone = 410,
    TooManyRequests = 429,
    InternalServerError = 500,
    BadGateway = 502,
    ServiceUnavailable = 503,
    GatewayTimeout = 504,
}

/// The requests that a fault applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultedRequest {
    /// Requests for the document.
    #[default]
    Poll,
    /// Approvals.
    Approve,
    /// Both.
    Any,
}

impl FaultStatus {
    pub const ALL: [Self; 11] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::RequestTimeout,
        Self::Gone,
        Self::TooManyRequests,
        Self::InternalServerError,
        Self::BadGateway,
        Self::ServiceUnavailable,
        Self::GatewayTimeout,
    ];

    /// The number of the status.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }
}

impl FaultedRequest {
    pub const ALL: [Self; 3] = [Self::Poll, Self::Approve, Self::Any];

    /// The word in JSON and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Approve => "approve",
            Self::Any => "any",
        }
    }
}

impl FaultAnswer {
    /// Returns true if the fault alters a document, so that it makes sense for polls only.
    #[must_use]
    pub const fn is_for_polls(self) -> bool {
        match self {
            Self::Empty | Self::Jump | Self::Hide(_) => true,
            Self::Status(_)
            | Self::Hang
            | Self::Reset
            | Self::Truncated
            | Self::Slow(_)
            | Self::Duplicate => false,
        }
    }
}

impl fmt::Display for FaultAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(out, "{}", status.code()),
            Self::Hang => out.write_str("hang"),
            Self::Reset => out.write_str("reset"),
            Self::Truncated => out.write_str("truncated"),
            Self::Empty => out.write_str("empty"),
            Self::Slow(delay) => write!(out, "slow={}", show_duration(*delay)),
            Self::Jump => out.write_str("jump"),
            Self::Hide(before) => write!(out, "hide={}", show_duration(*before)),
            Self::Duplicate => out.write_str("duplicate"),
        }
    }
}

impl FromStr for FaultAnswer {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let unknown = || NotAFault::Unknown(text.to_owned());
        let span = |span: &str, max: Duration| {
            let span = parse_duration(span).ok_or_else(unknown)?;
            let shown = || NotAFault::TooLong { text: text.to_owned(), max: show_duration(max) };
            if span > max { Err(shown()) } else { Ok(span) }
        };
        match text.split_once('=') {
            Some(("slow", delay)) => return Ok(Self::Slow(span(delay, SLOW_MAX)?)),
            Some(("hide", before)) => return Ok(Self::Hide(span(before, HIDE_MAX)?)),
            Some(_) => return Err(unknown()),
            None => {}
        }
        let is_meant = |status: &FaultStatus| text == status.code().to_string();
        if let Some(status) = FaultStatus::ALL.into_iter().find(is_meant) {
            return Ok(Self::Status(status));
        }
        let words = [Self::Hang, Self::Reset, Self::Truncated, Self::Empty, Self::Jump, Self::Duplicate];
        words.into_iter().find(|answer| answer.to_string() == text).ok_or_else(unknown)
    }
}

/// A text that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAFault {
    #[error(
        "not a fault: {0:?}\n  hint: write 400, 401, 403, 404, 408, 410, 429, 500, 502, 503, 504, hang, reset, \
         truncated, empty, slow=2s, jump, hide=5s or duplicate"
    )]
    Unknown(String),
    #[error("fault is too long: {text}\n  hint: at most {max}")]
    TooLong { text: String, max: String },
}

impl Serialize for FaultAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FaultAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_as_it_is_written() {
        let statuses = FaultStatus::ALL.into_iter().map(FaultAnswer::Status);
        let words = ["hang", "reset", "truncated", "empty", "jump", "duplicate", "slow=2s", "hide=1m30s"];
        for answer in statuses.chain(words.map(|word| word.parse().unwrap())) {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        assert_eq!("503".parse(), Ok(FaultAnswer::Status(FaultStatus::ServiceUnavailable)));
        assert_eq!("slow=2s".parse(), Ok(FaultAnswer::Slow(Duration::from_secs(2))));
    }

    #[test]
    fn other_texts_are_no_faults() {
        for text in ["", "200", "0500", "slow", "slow=", "slow=2", "hide", "jump=1", "Hang", "hang "] {
            let error = text.parse::<FaultAnswer>().unwrap_err();
            assert!(matches!(error, NotAFault::Unknown(_)), "{text}");
        }
        let error = "slow=11m".parse::<FaultAnswer>().unwrap_err();
        assert_eq!(error.to_string(), "fault is too long: slow=11m\n  hint: at most 10m");
        assert!("slow=10m".parse::<FaultAnswer>().is_ok() && "hide=24h".parse::<FaultAnswer>().is_ok());
        assert!("hide=86401s".parse::<FaultAnswer>().is_err());
    }

    #[test]
    fn a_requests_word_is_its_form_in_json() {
        for request in FaultedRequest::ALL {
            assert_eq!(serde_json::to_value(request).unwrap(), request.as_str());
        }
    }
}
