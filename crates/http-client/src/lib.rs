//! An HTTP/1.1 client for one host, with or without TLS.
//!
//! Deliberately absent: proxies (no environment variable is read), redirects, cookies, compression, and a pool of
//! connections. The caller sets time and size limits. Errors never contain the path or query of a URL, nor anything
//! that is sent.
//!
//! ```no_run
//! use forewarn_http_client::{HttpClient, Limits, Request, Trust, Url};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let url = Url::parse("https://hooks.example/events")?;
//! let mut client = HttpClient::new(url.clone(), Trust::system());
//! let response = client.send(&Request::post(url.target(), "{}"), Limits::default()).await?;
//! assert_eq!(response.status, 204);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod exchange;
mod http_client;
mod request;
mod trust;

pub use hyper::Method;
pub use hyper::body::Bytes;
pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::http::uri::Authority;

pub use exchange::{Incomplete, StreamedResponse, exchange, is_broken_off};
pub use forewarn_url::{BadUrl, Scheme, Url};
pub use http_client::{HttpClient, HttpError, HttpResponse, Limits};
pub use request::{PreparedRequest, Request};
pub use trust::{Trust, TrustError};

/// An error with its causes, on one line. A cause whose text is already part of the error is not repeated.
#[must_use]
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}
