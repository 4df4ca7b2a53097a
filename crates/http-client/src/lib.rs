//! One request to one place over HTTP/1.1, with TLS or without.
//!
//! Deliberately absent: proxies (no variable of the environment is looked at), redirects, cookies, compression, and a pool of
//! connections. Whoever asks says how long it may take and how much may come back. Nothing of a URL behind its host, and
//! nothing that is sent, is in any problem.
//!
//! ```no_run
//! use forewarn_http_client::{Limits, HttpClient, Request, Trust, Url};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let url = Url::parse("https://hooks.example/error_chain")?;
//! let mut line = HttpClient::new(url.clone(), Trust::system());
//! let answer = line.send(&Request::post(url.target(), "{}"), Limits::default()).await?;
//! assert_eq!(answer.status, 204);
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

pub use exchange::{Incomplete, Response, exchange, is_broken_off};
pub use forewarn_url::{BadUrl, Scheme, Url};
pub use http_client::{HttpClient, HttpError, HttpResponse, Limits};
pub use request::{Prepared, Request};
pub use trust::{Trust, TrustError};

/// A problem with its causes, in one line; a cause that it has named already is not repeated.
#[must_use]
pub fn error_chain(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}
