//! Start requests: how a tenant approves its events.
//!
//! `{"StartRequests":[{"EventId":"..."}]}`. Reading is lenient about what does not matter, members that nobody knows
//! and the incarnation among it, and strict about what does: a request that could be understood in two ways is refused,
//! and told why.

use forewarn_types::limits::IDS_PER_APPROVAL_MAX;
use forewarn_types::{EventId, without_mark};

use crate::json::{DEPTH_MAX, EVENT_ID_CHARS_MAX, Json, is_too_deep};

/// Bytes in the body of a request: room for every id that a request may name, generously spaced.
pub const BODY_BYTES_MAX: usize = 128 * 1024;

/// Why a body is not a list of start requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStartRequest {
    /// More than [`BODY_BYTES_MAX`].
    #[error("the body has more than {BODY_BYTES_MAX} bytes")]
    BodyTooLong,
    /// Nothing, or nothing but white space.
    #[error("the body is empty")]
    BodyEmpty,
    /// Bytes that are no text.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// Deeper than [`DEPTH_MAX`].
    #[error("the body is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// No JSON, or more than one value.
    #[error("the body is not JSON, see line {line}, column {column}")]
    NotJson {
        /// Where it went wrong; the first line is 1.
        line: usize,
        /// The position in that line.
        column: usize,
    },
    /// A list, a number, ...
    #[error("the body must be an object")]
    NotAnObject,
    /// Nothing to start.
    #[error("StartRequests is missing")]
    StartRequestsMissing,
    /// Which one counts?
    #[error("StartRequests is given twice")]
    StartRequestsTwice,
    /// A single object, mostly.
    #[error("StartRequests must be a list")]
    StartRequestsNotAList,
    /// A list of nothing.
    #[error("StartRequests must not be empty")]
    StartRequestsEmpty,
    /// More than a tenant can have events.
    #[error("StartRequests has more than {IDS_PER_APPROVAL_MAX} entries")]
    TooManyStartRequests,
    /// A bare id, mostly.
    #[error("each entry of StartRequests must be an object")]
    EntryNotAnObject,
    /// An entry that names no event.
    #[error("EventId is missing")]
    EventIdMissing,
    /// An entry that names two.
    #[error("EventId is given twice")]
    EventIdTwice,
    /// A number, null, ...
    #[error("EventId must be a string")]
    EventIdNotAString,
    /// More than [`EVENT_ID_CHARS_MAX`].
    #[error("EventId has more than {EVENT_ID_CHARS_MAX} characters")]
    EventIdTooLong,
    /// Some other text.
    #[error("EventId is not a GUID")]
    EventIdNotAGuid,
}

/// Reads the ids that a request names, in its order; one that is named twice is there twice.
///
/// ```
/// use forewarn_imds::{BadStartRequest, parse_start_requests};
/// let ids = parse_start_requests(br#"{"StartRequests":[{"EventId":"28512af7-c957-4500-9bc4-842d6fb531e4"}]}"#)?;
/// assert_eq!(ids[0].to_string(), "28512AF7-C957-4500-9BC4-842D6FB531E4");
/// assert_eq!(parse_start_requests(br#"{"StartRequests":{}}"#), Err(BadStartRequest::StartRequestsNotAList));
/// # Ok::<_, BadStartRequest>(())
/// ```
///
/// # Errors
/// When the body passes a limit, is not JSON, or does not say which events to start.
pub fn parse_start_requests(body: &[u8]) -> Result<Vec<EventId>, BadStartRequest> {
    if body.len() > BODY_BYTES_MAX {
        return Err(BadStartRequest::BodyTooLong);
    }
    let text = without_mark(str::from_utf8(body).map_err(|_| BadStartRequest::NotUtf8)?);
    if text.trim_ascii().is_empty() {
        return Err(BadStartRequest::BodyEmpty);
    }
    if is_too_deep(text) {
        return Err(BadStartRequest::TooDeep);
    }
    ids(&Json::parse(text).map_err(|error| not_json(&error))?)
}

/// Writes the body that approves these events.
#[must_use]
pub fn render_start_requests(ids: &[EventId]) -> String {
    let entries: Vec<_> = ids.iter().map(|id| format!(r#"{{"EventId":"{id}"}}"#)).collect();
    format!(r#"{{"StartRequests":[{}]}}"#, entries.join(","))
}

fn not_json(error: &serde_json::Error) -> BadStartRequest {
    BadStartRequest::NotJson { line: error.line(), column: error.column() }
}

fn ids(body: &Json) -> Result<Vec<EventId>, BadStartRequest> {
    let Json::Object(values) = body else { return Err(BadStartRequest::NotAnObject) };
    let requests =
        only(values, BadStartRequest::StartRequestsTwice)?.ok_or(BadStartRequest::StartRequestsMissing)?;
    let Json::List(entries) = requests else { return Err(BadStartRequest::StartRequestsNotAList) };
    if entries.is_empty() {
        return Err(BadStartRequest::StartRequestsEmpty);
    }
    if entries.len() > IDS_PER_APPROVAL_MAX {
        return Err(BadStartRequest::TooManyStartRequests);
    }
    entries.iter().map(id).collect()
}

fn id(entry: &Json) -> Result<EventId, BadStartRequest> {
    let Json::Object(values) = entry else { return Err(BadStartRequest::EntryNotAnObject) };
    let id = only(values, BadStartRequest::EventIdTwice)?.ok_or(BadStartRequest::EventIdMissing)?;
    let Json::Text(text) = id else { return Err(BadStartRequest::EventIdNotAString) };
    if text.chars().count() > EVENT_ID_CHARS_MAX {
        return Err(BadStartRequest::EventIdTooLong);
    }
    EventId::parse(text).ok_or(BadStartRequest::EventIdNotAGuid)
}

/// The value of a member that may be given once.
fn only(values: &[Json], twice: BadStartRequest) -> Result<Option<&Json>, BadStartRequest> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        [_, _, ..] => Err(twice),
    }
}
