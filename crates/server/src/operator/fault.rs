//! What an operator is told instead of what was asked for.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::refusal::Refusal as NotThere;
use forewarn_control::{BadCommand, BadFleet, FleetPlace, ScaleSetError, Unknown};
use forewarn_store::ReadFailed;
use schemars::JsonSchema;
use serde::Serialize;

use super::token::NotAdmitted;
use forewarn_control::ControlError;
use forewarn_control::Denied;

/// A problem, before it is a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    kind: Kind,
    detail: String,
    /// Position in the body of the request.
    place: Option<BodyPlace>,
}

/// Position in the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BodyPlace {
    pointer: String,
    line: Option<usize>,
}

/// The kinds of problems. A client may tell them apart by their `type`; what exactly is wrong is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It cannot be understood, or a value is not allowed.
    NotUnderstood,
    /// The token is missing or wrong.
    Unauthorized,
    /// It came from a web page, or to a name that somebody else may have pointed here.
    Foreign,
    /// Who asks may not do that.
    Denied,
    /// Something that is named is not there.
    NotFound,
    /// The path does not take that method.
    WrongMethod,
    /// The rules refuse it, or it is not for this server.
    Refused,
    /// A name is that of several.
    Ambiguous,
    /// It is not any more what it was when it was read.
    Changed,
    /// The body is too long.
    TooLong,
    /// The body is not said to be JSON.
    NotJson,
    /// The idempotency key was used for another request.
    KeyUsed,
    /// It is the fault of this server.
    Broken,
    /// It cannot be made durable now.
    Unavailable,
    /// The server has too many connections.
    Busy,
    /// The request did not arrive in time.
    TooSlow,
}

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ControlError")]
pub(super) struct ProblemDocument {
    /// The kind of problem: a reference that stays the same, such as `/problems/refused`.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem, in words.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What is wrong, for people; the last lines may be a hint.
    detail: String,
    /// What to do about it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// JSON pointer to the entry or member of the body that is the reason, such as `/vm/3/host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// Line of the body on which it is, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// When to try again what could not be written.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What is before a hint in the text of a problem.
const HINT: &str = "\n  hint: ";

impl Kind {
    /// All of them, by status.
    pub(super) const ALL: [Self; 16] = [
        Self::NotUnderstood,
        Self::Unauthorized,
        Self::Foreign,
        Self::Denied,
        Self::NotFound,
        Self::WrongMethod,
        Self::TooSlow,
        Self::Refused,
        Self::Ambiguous,
        Self::Changed,
        Self::TooLong,
        Self::NotJson,
        Self::KeyUsed,
        Self::Broken,
        Self::Busy,
        Self::Unavailable,
    ];

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NotUnderstood => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Foreign | Self::Denied => StatusCode::FORBIDDEN,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::KeyUsed => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Refused | Self::Ambiguous => StatusCode::CONFLICT,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The reference to this kind.
    pub(super) const fn reference(self) -> &'static str {
        match self {
            Self::NotUnderstood => "/problems/not-understood",
            Self::Unauthorized => "/problems/unauthorized",
            Self::Foreign => "/problems/foreign",
            Self::Denied => "/problems/denied",
            Self::Changed => "/problems/changed",
            Self::KeyUsed => "/problems/key-used",
            Self::NotFound => "/problems/not-found",
            Self::WrongMethod => "/problems/wrong-method",
            Self::Refused => "/problems/refused",
            Self::Ambiguous => "/problems/ambiguous",
            Self::TooLong => "/problems/too-long",
            Self::NotJson => "/problems/not-json",
            Self::Broken => "/problems/broken",
            Self::Unavailable => "/problems/unavailable",
            Self::Busy => "/problems/busy",
            Self::TooSlow => "/problems/too-slow",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::NotUnderstood => "The request is not understood",
            Self::Unauthorized => "The token is missing or wrong",
            Self::Denied => "The token is not good for that",
            Self::Changed => "It has changed since it was read",
            Self::KeyUsed => "The idempotency key was used for another request",
            Self::Foreign => "Not for web pages, nor by a foreign name",
            Self::NotFound => "Something that is named is not there",
            Self::WrongMethod => "The path does not take that method",
            Self::Refused => "The rules or this server refuse it",
            Self::Ambiguous => "The name is that of several",
            Self::TooLong => "The body is too long",
            Self::NotJson => "The body is not JSON",
            Self::Broken => "The server is broken",
            Self::Unavailable => "It cannot be made durable now",
            Self::Busy => "The server has too many connections",
            Self::TooSlow => "The request did not arrive in time",
        }
    }

    fn of_status(status: StatusCode) -> Self {
        Self::ALL.into_iter().find(|kind| kind.status() == status).unwrap_or(if status.is_server_error() {
            Self::Broken
        } else {
            Self::NotUnderstood
        })
    }
}

impl Fault {
    /// What a problem document is (RFC 9457).
    pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), place: None }
    }

    /// The same problem, with its position in the body of the request.
    pub(super) fn at(self, place: &FleetPlace, body: &[u8]) -> Self {
        let place = BodyPlace { pointer: place.pointer().to_owned(), line: place.line_in_json(body) };
        Self { place: Some(place), ..self }
    }

    /// The problem behind an answer of the framework.
    pub(super) fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(Kind::of_status(status), detail)
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(Kind::NotUnderstood, detail)
    }

    pub(super) fn unauthorized() -> Self {
        NotAdmitted::Wrong.into()
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(Kind::Refused, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Kind::Foreign, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, detail)
    }

    pub(super) fn method() -> Self {
        Self::new(Kind::WrongMethod, "this path does not take that method")
    }

    pub(super) fn content_type() -> Self {
        Self::new(Kind::NotJson, "the body must be application/json")
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, detail)
    }

    /// Whether it tells that a name is there, or is not.
    pub(super) fn is_about_names(&self) -> bool {
        matches!(self.kind, Kind::NotFound | Kind::Ambiguous)
    }

    /// The document as JSON. Texts and a number can always be written.
    pub(super) fn text(self) -> String {
        serde_json::to_string(&self.document()).unwrap_or_default()
    }

    fn document(self) -> ProblemDocument {
        let Self { kind, detail, place } = self;
        let (pointer, line) = place.map_or((None, None), |place| (Some(place.pointer), place.line));
        ProblemDocument {
            pointer,
            line,
            kind: kind.reference().to_owned(),
            title: kind.title().to_owned(),
            status: kind.status().as_u16(),
            hint: detail.split_once(HINT).map(|(_, hint)| hint.to_owned()),
            detail,
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let kind = self.kind;
        let mut response = Response::new(Body::from(self.text()));
        *response.status_mut() = kind.status();
        response.headers_mut().insert(header::CONTENT_TYPE, Self::CONTENT_TYPE);
        match kind {
            Kind::Unauthorized => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Kind::Unavailable | Kind::Busy => {
                response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
            }
            Kind::NotUnderstood
            | Kind::Foreign
            | Kind::Denied
            | Kind::NotFound
            | Kind::WrongMethod
            | Kind::Refused
            | Kind::Ambiguous
            | Kind::Changed
            | Kind::TooLong
            | Kind::NotJson
            | Kind::KeyUsed
            | Kind::TooSlow
            | Kind::Broken => {}
        }
        response
    }
}

impl From<ControlError> for Fault {
    fn from(problem: ControlError) -> Self {
        let kind = match &problem {
            ControlError::Bad(BadCommand::Unknown(Unknown::Nothing { .. }))
            | ControlError::NoSuchCluster
            | ControlError::Rejected(NotThere::NoSuchCluster(_) | NotThere::NoSuchToken(_)) => Kind::NotFound,
            ControlError::Bad(BadCommand::Unknown(Unknown::Several { .. })) => Kind::Ambiguous,
            ControlError::Rejected(NotThere::KeyUsed(_)) => Kind::KeyUsed,
            ControlError::Bad(_) | ControlError::Rejected(NotThere::BadKey | NotThere::BadBy) => {
                Kind::NotUnderstood
            }
            ControlError::ScaleSetError(bad) => return bad.clone().into(),
            ControlError::Changed => Kind::Changed,
            ControlError::Denied(_) => Kind::Denied,
            ControlError::TokenGone => Kind::Unauthorized,
            ControlError::Refused(_)
            | ControlError::Rejected(_)
            | ControlError::ClusterInUse(_)
            | ControlError::ShownOnce(_)
            | ControlError::AddressTaken { .. }
            | ControlError::GroupTaken(_)
            | ControlError::EndOfTime
            | ControlError::NotPretending
            | ControlError::RealClock => Kind::Refused,
            ControlError::Outdated | ControlError::Unavailable => Kind::Unavailable,
        };
        Self::new(kind, problem.to_string())
    }
}

impl From<Unknown> for Fault {
    fn from(unknown: Unknown) -> Self {
        ControlError::Bad(unknown.into()).into()
    }
}

impl From<NotAdmitted> for Fault {
    fn from(why: NotAdmitted) -> Self {
        Self::new(Kind::Unauthorized, why.to_string())
    }
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        ControlError::Denied(denied).into()
    }
}

impl From<ReadFailed> for Fault {
    fn from(failed: ReadFailed) -> Self {
        match failed {
            ReadFailed::TooMany(_) => Self::bad(failed.to_string()),
            ReadFailed::Closed | ReadFailed::Busy | ReadFailed::Damaged(_) | ReadFailed::Failed(_) => {
                Self::unavailable(failed.to_string())
            }
        }
    }
}

/// What somebody wants of a scale set, and what there is.
impl From<ScaleSetError> for Fault {
    fn from(bad: ScaleSetError) -> Self {
        match bad {
            ScaleSetError::Unknown(unknown) => unknown.into(),
            ScaleSetError::TooMany(_) | ScaleSetError::FaultDomains(_) => Self::bad(bad.to_string()),
            ScaleSetError::NoHost { .. } | ScaleSetError::Protected { .. } => Self::conflict(bad.to_string()),
        }
    }
}

/// A fleet that was understood, and contradicts itself or what there is.
impl From<BadFleet> for Fault {
    fn from(bad: BadFleet) -> Self {
        Self::conflict(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_member_of_its_own_and_stays_in_the_detail() {
        let document = Fault::unauthorized().document();
        assert_eq!(
            document.detail,
            "the token is missing or wrong\n  hint: --token TOKEN, or FOREWARN_TOKEN"
        );
        assert_eq!(document.hint.as_deref(), Some("--token TOKEN, or FOREWARN_TOKEN"));
        assert_eq!((document.kind.as_str(), document.status), ("/problems/unauthorized", 401));
        assert_eq!(Fault::method().document().hint, None);
    }

    #[test]
    fn every_kind_has_a_reference_of_its_own() {
        let references: std::collections::BTreeSet<_> = Kind::ALL.map(Kind::reference).into_iter().collect();
        assert_eq!(references.len(), Kind::ALL.len());
        assert_eq!(Kind::of_status(StatusCode::CONFLICT), Kind::Refused);
        assert_eq!(Kind::of_status(StatusCode::IM_A_TEAPOT), Kind::NotUnderstood);
        assert_eq!(Kind::of_status(StatusCode::BAD_GATEWAY), Kind::Broken);
    }
}
