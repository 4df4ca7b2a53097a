//! Start requests: the approval of events by a tenant.
//!
//! `{"StartRequests":[{"EventId":"..."}]}`. Parsing ignores unknown members and the incarnation, but rejects a request
//! that is ambiguous, with the reason.

use forewarn_types::limits::IDS_PER_APPROVAL_MAX;
use forewarn_types::{EventId, without_mark};

use crate::json::{DEPTH_MAX, EVENT_ID_CHARS_MAX, Json, is_too_deep};

/// Maximum size of a request body: room for every id that a request may name, with generous white space.
pub const BODY_BYTES_MAX: usize = 128 * 1024;

/// The reason why a body is not a list of start requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStartRequest {
    /// More than [`BODY_BYTES_MAX`].
    #[error("the body has more than {BODY_BYTES_MAX} bytes")]
    BodyTooLong,
    /// The body has only white space.
    #[error("the body is empty")]
    BodyEmpty,
    /// The bytes are not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// Deeper than [`DEPTH_MAX`].
    #[error("the body is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// Not JSON, or more than one value.
    #[error("the body is not JSON, see line {line}, column {column}")]
    NotJson {
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error.
        column: usize,
    },
    /// The body is a list, a number, or another value.
    #[error("the body must be an object")]
    NotAnObject,
    /// The body has no `StartRequests`.
    #[error("StartRequests is missing")]
    StartRequestsMissing,
    /// `StartRequests` is repeated.
    #[error("StartRequests is given twice")]
    StartRequestsTwice,
    /// `StartRequests` is another value, such as a single object.
    #[error("StartRequests must be a list")]
    StartRequestsNotAList,
    /// The list is empty.
    #[error("StartRequests must not be empty")]
    StartRequestsEmpty,
    /// More entries than a tenant can have events.
    #[error("StartRequests has more than {IDS_PER_APPROVAL_MAX} entries")]
    TooManyStartRequests,
    /// An entry is another value, such as a bare id.
    #[error("each entry of StartRequests must be an object")]
    EntryNotAnObject,
    /// An entry without an event.
    #[error("EventId is missing")]
    EventIdMissing,
    /// An entry with two events.
    #[error("EventId is given twice")]
    EventIdTwice,
    /// The id is a number, null, or another value.
    #[error("EventId must be a string")]
    EventIdNotAString,
    /// More than [`EVENT_ID_CHARS_MAX`].
    #[error("EventId has more than {EVENT_ID_CHARS_MAX} characters")]
    EventIdTooLong,
    /// The id is another text.
    #[error("EventId is not a GUID")]
    EventIdNotAGuid,
}

/// Parses the ids of a request, in its order and with repetitions.
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
/// The body exceeds a limit, is not JSON, or does not name the events to start.
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
