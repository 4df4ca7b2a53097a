//! Errors of the operator API, as problem documents (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::refusal::Refusal as NotThere;
use forewarn_control::{CommandError, FleetFileError, FleetPosition, LookupError, ScaleSetError, TermsError};
use forewarn_store::ReadError;
use schemars::JsonSchema;
use serde::Serialize;

use super::token::TokenError;
use forewarn_control::ControlError;
use forewarn_control::Denied;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiProblem {
    kind: ProblemKind,
    detail: String,
    /// Position in the body of the request.
    position: Option<BodyPosition>,
}

/// Position in the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BodyPosition {
    pointer: String,
    line: Option<usize>,
}

/// Kinds of problems, told apart by their `type`. The detail is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProblemKind {
    /// Malformed request, or an invalid value.
    InvalidRequest,
    /// The token is missing or wrong.
    Unauthorized,
    /// Sent by another web page, or to a foreign host name.
    Foreign,
    /// The permit does not suffice.
    Denied,
    /// A named resource does not exist.
    NotFound,
    /// The path does not support the method.
    WrongMethod,
    /// Rejected by the rules, or not supported by this server.
    Refused,
    /// The request requires notice, and no machine would be notified.
    NoNotice,
    /// A name matches several resources.
    Ambiguous,
    /// The resource has changed since it was read.
    Changed,
    /// The body is too long.
    TooLong,
    /// The content type is not JSON.
    NotJson,
    /// The idempotency key was used for another request.
    KeyUsed,
    /// Internal error.
    Internal,
    /// The driver of the cluster has failed. Only a restart of the server helps.
    ClusterFailed,
    /// The journal cannot be written.
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
    /// Stable identifier of the kind of problem, such as `/problems/refused`.
    #[serde(rename = "type")]
    kind: String,
    /// Title of the kind of problem.
    title: String,
    /// HTTP status.
    status: u16,
    /// Description for people; the last lines may be a hint.
    detail: String,
    /// Hint, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// JSON pointer to the entry or member of the body that is the reason, such as `/vm/3/host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// Line of the body, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// Pause before a retry.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Separator before the hint in a message.
const HINT: &str = "\n  hint: ";

impl ProblemKind {
    /// All kinds, by status.
    pub(super) const ALL: [Self; 18] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Foreign,
        Self::Denied,
        Self::NotFound,
        Self::WrongMethod,
        Self::TooSlow,
        Self::Refused,
        Self::NoNotice,
        Self::Ambiguous,
        Self::Changed,
        Self::TooLong,
        Self::NotJson,
        Self::KeyUsed,
        Self::Internal,
        Self::Busy,
        Self::ClusterFailed,
        Self::Unavailable,
    ];

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Foreign | Self::Denied => StatusCode::FORBIDDEN,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::KeyUsed => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Refused | Self::NoNotice | Self::Ambiguous => StatusCode::CONFLICT,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ClusterFailed | Self::Unavailable | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The `type` of this kind.
    pub(super) const fn reference(self) -> &'static str {
        match self {
            Self::InvalidRequest => "/problems/invalid-request",
            Self::Unauthorized => "/problems/unauthorized",
            Self::Foreign => "/problems/foreign",
            Self::Denied => "/problems/denied",
            Self::Changed => "/problems/changed",
            Self::KeyUsed => "/problems/key-used",
            Self::NotFound => "/problems/not-found",
            Self::WrongMethod => "/problems/wrong-method",
            Self::Refused => "/problems/refused",
            Self::NoNotice => "/problems/no-notice",
            Self::Ambiguous => "/problems/ambiguous",
            Self::TooLong => "/problems/too-long",
            Self::NotJson => "/problems/not-json",
            Self::Internal => "/problems/internal-error",
            Self::ClusterFailed => "/problems/cluster-failed",
            Self::Unavailable => "/problems/unavailable",
            Self::Busy => "/problems/busy",
            Self::TooSlow => "/problems/too-slow",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is invalid",
            Self::Unauthorized => "The token is missing or invalid",
            Self::Denied => "The token does not permit this request",
            Self::Changed => "The resource has changed since it was read",
            Self::KeyUsed => "The idempotency key was used for another request",
            Self::Foreign => "The request came from another web page or to a foreign host name",
            Self::NotFound => "The resource was not found",
            Self::WrongMethod => "The path does not support the method",
            Self::Refused => "The request was rejected",
            Self::NoNotice => "No machine would be notified",
            Self::Ambiguous => "The name is ambiguous",
            Self::TooLong => "The body is too long",
            Self::NotJson => "The body is not JSON",
            Self::Internal => "Internal error",
            Self::ClusterFailed => "The cluster has failed",
            Self::Unavailable => "The journal cannot be written",
            Self::Busy => "The server has too many connections",
            Self::TooSlow => "The request timed out",
        }
    }

    fn of_status(status: StatusCode) -> Self {
        Self::ALL.into_iter().find(|kind| kind.status() == status).unwrap_or(if status.is_server_error() {
            Self::Internal
        } else {
            Self::InvalidRequest
        })
    }
}

impl ApiProblem {
    /// Content type of a problem document.
    pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

    pub(super) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), position: None }
    }

    /// The same problem, with its position in the body of the request.
    pub(super) fn at(self, place: &FleetPosition, body: &[u8]) -> Self {
        let position = BodyPosition { pointer: place.pointer().to_owned(), line: place.line_in_json(body) };
        Self { position: Some(position), ..self }
    }

    /// The problem for a status of the web framework.
    pub(super) fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::of_status(status), detail)
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::InvalidRequest, detail)
    }

    pub(super) fn unauthorized() -> Self {
        TokenError::Invalid.into()
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Refused, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Foreign, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    pub(super) fn method() -> Self {
        Self::new(ProblemKind::WrongMethod, "the path does not support the method")
    }

    pub(super) fn content_type() -> Self {
        Self::new(ProblemKind::NotJson, "the body must be application/json")
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// Returns true if the problem reveals that a name exists or does not.
    pub(super) fn is_about_names(&self) -> bool {
        matches!(self.kind, ProblemKind::NotFound | ProblemKind::Ambiguous)
    }

    /// The document as JSON. Serialization of strings and numbers does not fail.
    pub(super) fn text(self) -> String {
        serde_json::to_string(&self.document()).unwrap_or_default()
    }

    fn document(self) -> ProblemDocument {
        let Self { kind, detail, position } = self;
        let (pointer, line) =
            position.map_or((None, None), |position| (Some(position.pointer), position.line));
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

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let kind = self.kind;
        let mut response = Response::new(Body::from(self.text()));
        *response.status_mut() = kind.status();
        response.headers_mut().insert(header::CONTENT_TYPE, Self::CONTENT_TYPE);
        match kind {
            ProblemKind::Unauthorized => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ProblemKind::Unavailable | ProblemKind::Busy => {
                response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
            }
            ProblemKind::InvalidRequest
            | ProblemKind::Foreign
            | ProblemKind::Denied
            | ProblemKind::NotFound
            | ProblemKind::WrongMethod
            | ProblemKind::Refused
            | ProblemKind::NoNotice
            | ProblemKind::Ambiguous
            | ProblemKind::Changed
            | ProblemKind::TooLong
            | ProblemKind::NotJson
            | ProblemKind::KeyUsed
            | ProblemKind::TooSlow
            | ProblemKind::ClusterFailed
            | ProblemKind::Internal => {}
        }
        response
    }
}

impl From<ControlError> for ApiProblem {
    fn from(problem: ControlError) -> Self {
        let kind = match &problem {
            ControlError::Bad(CommandError::Unknown(LookupError::Nothing { .. }))
            | ControlError::NoSuchCluster
            | ControlError::Rejected(NotThere::NoSuchCluster(_) | NotThere::NoSuchToken(_)) => {
                ProblemKind::NotFound
            }
            ControlError::Bad(CommandError::Unknown(LookupError::Several { .. })) => ProblemKind::Ambiguous,
            ControlError::Bad(
                CommandError::WithWindows(_)
                | CommandError::TimeZone(_)
                | CommandError::RolloutTerms(TermsError::Zone(_)),
            ) => ProblemKind::Refused,
            ControlError::Rejected(NotThere::KeyUsed(_)) => ProblemKind::KeyUsed,
            ControlError::Bad(_) | ControlError::Rejected(NotThere::BadKey | NotThere::BadBy) => {
                ProblemKind::InvalidRequest
            }
            ControlError::ScaleSetError(bad) => return bad.clone().into(),
            ControlError::NoNotice(_) | ControlError::NoEvent => ProblemKind::NoNotice,
            ControlError::Changed => ProblemKind::Changed,
            ControlError::Denied(_) => ProblemKind::Denied,
            ControlError::TokenGone => ProblemKind::Unauthorized,
            ControlError::Refused(_)
            | ControlError::Rejected(_)
            | ControlError::ClusterInUse(_)
            | ControlError::ShownOnce(_)
            | ControlError::AddressTaken { .. }
            | ControlError::GroupTaken(_)
            | ControlError::EndOfTime
            | ControlError::NotLater(_)
            | ControlError::NotPretending
            | ControlError::RealClock => ProblemKind::Refused,
            ControlError::ClusterFailed(_) => ProblemKind::ClusterFailed,
            ControlError::Outdated
            | ControlError::Unclaimed
            | ControlError::EngineRestored(_)
            | ControlError::Unavailable
            | ControlError::Elsewhere => ProblemKind::Unavailable,
        };
        Self::new(kind, problem.to_string())
    }
}

impl From<LookupError> for ApiProblem {
    fn from(unknown: LookupError) -> Self {
        ControlError::Bad(unknown.into()).into()
    }
}

impl From<TokenError> for ApiProblem {
    fn from(why: TokenError) -> Self {
        Self::new(ProblemKind::Unauthorized, why.to_string())
    }
}

impl From<Denied> for ApiProblem {
    fn from(denied: Denied) -> Self {
        ControlError::Denied(denied).into()
    }
}

impl From<ReadError> for ApiProblem {
    fn from(failed: ReadError) -> Self {
        match failed {
            ReadError::TooMany(_) => Self::bad(failed.to_string()),
            ReadError::Closed | ReadError::Busy | ReadError::Damaged(_) | ReadError::Failed(_) => {
                Self::unavailable(failed.to_string())
            }
        }
    }
}

impl From<ScaleSetError> for ApiProblem {
    fn from(bad: ScaleSetError) -> Self {
        match bad {
            ScaleSetError::Unknown(unknown) => unknown.into(),
            ScaleSetError::TooMany(_) | ScaleSetError::FaultDomains(_) => Self::bad(bad.to_string()),
            ScaleSetError::NoHost { .. } | ScaleSetError::Protected { .. } => Self::conflict(bad.to_string()),
        }
    }
}

/// A well-formed fleet with a contradiction.
impl From<FleetFileError> for ApiProblem {
    fn from(bad: FleetFileError) -> Self {
        Self::conflict(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_member_of_its_own_and_stays_in_the_detail() {
        let document = ApiProblem::unauthorized().document();
        assert_eq!(
            document.detail,
            "the token is missing or invalid\n  hint: `forewarn context set NAME --token-file FILE`, or FOREWARN_TOKEN"
        );
        assert_eq!(
            document.hint.as_deref(),
            Some("`forewarn context set NAME --token-file FILE`, or FOREWARN_TOKEN")
        );
        assert_eq!((document.kind.as_str(), document.status), ("/problems/unauthorized", 401));
        assert_eq!(ApiProblem::method().document().hint, None);
    }

    #[test]
    fn every_kind_has_a_reference_of_its_own() {
        let references: std::collections::BTreeSet<_> =
            ProblemKind::ALL.map(ProblemKind::reference).into_iter().collect();
        assert_eq!(references.len(), ProblemKind::ALL.len());
        assert_eq!(ProblemKind::of_status(StatusCode::CONFLICT), ProblemKind::Refused);
        assert_eq!(ProblemKind::of_status(StatusCode::IM_A_TEAPOT), ProblemKind::InvalidRequest);
        assert_eq!(ProblemKind::of_status(StatusCode::BAD_GATEWAY), ProblemKind::Internal);
    }
}
