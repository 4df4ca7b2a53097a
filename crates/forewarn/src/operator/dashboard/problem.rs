//! Responses of the proxy itself, as problem documents (RFC 9457).

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

/// A body of the proxy, or one of the server, which is sent as it comes.
pub(super) type ProxyBody = Either<Full<Bytes>, Incoming>;

/// Kinds of problems of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyProblem {
    /// Sent by another web page, or to a foreign host name.
    Foreign,
    /// No session, or a code that does not work. The page shows the detail instead of its login.
    NoSession,
    /// The server rejects the token. The page shows the detail instead of its login.
    NoToken,
    /// The request is malformed.
    Invalid,
    /// The method is not supported.
    Method,
    /// The server cannot be reached.
    Unreachable,
    /// No random numbers.
    Internal,
}

impl ProxyProblem {
    const fn status(self) -> StatusCode {
        match self {
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::NoSession | Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The `type`, and the title.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Foreign => {
                ("/problems/foreign", "The request came from another web page or to a foreign host name")
            }
            Self::NoSession | Self::NoToken => {
                ("/problems/dashboard-session", "The browser has no session of `forewarn dashboard`")
            }
            Self::Invalid => ("/problems/invalid-request", "The request is invalid"),
            Self::Method => ("/problems/wrong-method", "The path does not support the method"),
            Self::Unreachable => ("/problems/unreachable", "The server cannot be reached"),
            Self::Internal => ("/problems/internal-error", "Internal error"),
        }
    }

    /// The problem document.
    pub(super) fn response(self, detail: &str) -> Response<ProxyBody> {
        let (kind, title) = self.names();
        let hint = detail.split_once("\n  hint: ").map(|(_, hint)| hint);
        let status = self.status().as_u16();
        let document =
            json!({ "type": kind, "title": title, "status": status, "detail": detail, "hint": hint });
        let mut response = Response::new(whole(document.to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

/// A body of the proxy.
pub(super) fn whole(text: impl Into<Bytes>) -> ProxyBody {
    Either::Left(Full::new(text.into()))
}
