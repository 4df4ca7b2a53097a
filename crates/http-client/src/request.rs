//! Requests.

use std::fmt;

use http_body_util::Full;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The path and query.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Besides `Host` and what the body needs; without a `User-Agent`, it is Forewarn's.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A request that can be sent: exactly its own headers, and those that the body needs.
pub struct Prepared(pub(crate) hyper::Request<Full<Bytes>>);

impl Request {
    /// Asks for something.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self::new(Method::GET, target, Bytes::new())
    }

    /// Brings something.
    #[must_use]
    pub fn post(target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, target, body)
    }

    /// Any request.
    #[must_use]
    pub fn new(method: Method, target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method, target: target.into(), headers: HeaderMap::new(), body: body.into() }
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Checks the target. Nothing is added to the headers: `Host` has to be among them.
    ///
    /// # Errors
    /// Fails if the target is not valid.
    pub fn prepare(self) -> Result<Prepared, hyper::http::Error> {
        let built = hyper::Request::builder().method(self.method).uri(self.target);
        let mut built = built.body(Full::new(self.body))?;
        *built.headers_mut() = self.headers;
        Ok(Prepared(built))
    }
}

impl fmt::Debug for Prepared {
    /// Headers and targets have secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Prepared({})", self.0.method())
    }
}
