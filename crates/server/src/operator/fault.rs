//! What an operator is told instead of what was asked for.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_catalogue::Refusal as NotThere;
use forewarn_store::ReadFailed;
use forewarn_wire::operator::{BadCommand, BadFleet, Unknown};
use serde_json::json;

use crate::engine::Problem;

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    status: StatusCode,
    detail: String,
}

/// When to try again what could not be written.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

impl Fault {
    /// What a problem document is (RFC 9457).
    pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "the key is missing or wrong\n  hint: --token KEY, or FOREWARN_TOKEN",
        )
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
    }

    pub(super) fn content_type() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let body = json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, Self::CONTENT_TYPE);
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        response
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let status = match &problem {
            Problem::Bad(BadCommand::Unknown(Unknown::Nothing { .. }))
            | Problem::NoSuchCluster
            | Problem::Catalogue(NotThere::NoSuchCluster(_) | NotThere::NoSuchToken(_)) => {
                StatusCode::NOT_FOUND
            }
            Problem::Catalogue(NotThere::KeyUsed(_)) => StatusCode::UNPROCESSABLE_ENTITY,
            Problem::Catalogue(NotThere::BadKey | NotThere::BadBy | NotThere::ExpiredAlready(_)) => {
                StatusCode::BAD_REQUEST
            }
            Problem::Changed => StatusCode::PRECONDITION_FAILED,
            Problem::Bad(_) | Problem::EndOfTime => StatusCode::BAD_REQUEST,
            Problem::Refused(_)
            | Problem::Catalogue(_)
            | Problem::ClusterInUse(_)
            | Problem::AddressTaken { .. }
            | Problem::NotPretending
            | Problem::RealClock => StatusCode::CONFLICT,
            Problem::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, problem.to_string())
    }
}

impl From<Unknown> for Fault {
    fn from(unknown: Unknown) -> Self {
        Problem::Bad(unknown.into()).into()
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

impl From<BadFleet> for Fault {
    fn from(bad: BadFleet) -> Self {
        Self::bad(bad.to_string())
    }
}
