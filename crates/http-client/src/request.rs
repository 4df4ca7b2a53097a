//! Requests of the client.

use std::fmt;

use http_body_util::Full;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Header fields besides those of the body. The default `Host` is that of the URL, the default `User-Agent` that of
    /// Forewarn.
    pub headers: HeaderMap,
    /// Body; empty for none.
    pub body: Bytes,
}

/// A validated request with exactly its own header fields, and those of the body.
pub struct PreparedRequest(pub(crate) hyper::Request<Full<Bytes>>);

impl Request {
    /// A GET request.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self::new(Method::GET, target, Bytes::new())
    }

    /// A POST request.
    #[must_use]
    pub fn post(target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, target, body)
    }

    /// A request with any method.
    #[must_use]
    pub fn new(method: Method, target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method, target: target.into(), headers: HeaderMap::new(), body: body.into() }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Validates the target. Adds no header fields: `Host` must be among them.
    ///
    /// # Errors
    /// Fails if the target is not valid.
    pub fn prepare(self) -> Result<PreparedRequest, hyper::http::Error> {
        let built = hyper::Request::builder().method(self.method).uri(self.target);
        let mut built = built.body(Full::new(self.body))?;
        *built.headers_mut() = self.headers;
        Ok(PreparedRequest(built))
    }
}

impl fmt::Debug for PreparedRequest {
    /// Header fields and targets may contain secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PreparedRequest({})", self.0.method())
    }
}
