//! Headers of every request to an endpoint.

use crate::http::Request;
use crate::http::header::{HeaderName, HeaderValue, USER_AGENT};

/// An endpoint rejects requests without this header, so that a program cannot be made to send one by a redirect.
const METADATA: HeaderName = HeaderName::from_static("metadata");
const TRUE: HeaderValue = HeaderValue::from_static("true");

const AGENT: HeaderValue = HeaderValue::from_static(concat!("forewarn-client/", env!("CARGO_PKG_VERSION")));

/// Adds `Metadata: true` and the name of this client to a request.
pub(crate) fn with_client_headers(request: Request) -> Request {
    request.with(METADATA, TRUE).with(USER_AGENT, AGENT)
}
