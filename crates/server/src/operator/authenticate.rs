//! Authentication of requests, and rejection of requests from web pages and to foreign host names.
//!
//! The API of `forewarn dev` is open to every process that can reach loopback, and that includes browsers. A request
//! of a web page has `Origin` or `Sec-Fetch-Site`, or a DNS name in `Host`: names with dots are only accepted from the
//! settings.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::{ApiProblem, ProblemKind};
use super::token::{self, TokenError};
use super::{Access, rejection};
use crate::clients::authenticate_connection;
use crate::control_handle::ControlHandle;
use forewarn_control::Permit;
use forewarn_url::OwnHosts;

/// Authentication settings of a listener.
#[derive(Debug)]
pub(super) struct Authenticator {
    pub(super) access: Access,
    pub(super) names: HostNames,
    pub(super) control: ControlHandle,
    /// Paths that need no token: liveness probes have none.
    pub(super) public_paths: Vec<&'static str>,
}

/// A request that is rejected whatever it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignRequest {
    /// A web page has sent it.
    Page,
    /// Its host name is not one of this server: another domain may resolve to this address.
    Name {
        /// The way to make the name known. `None` if there is none.
        advice: Option<&'static str>,
    },
}

/// Host names that requests may have. They can be changed while the server runs.
#[derive(Clone, Debug, Default)]
pub struct HostNames(Arc<ArcSwap<OwnHosts>>);

impl HostNames {
    #[must_use]
    pub fn new(names: OwnHosts) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(names)))
    }

    pub fn set(&self, names: OwnHosts) {
        self.0.store(Arc::new(names));
    }
}

pub(super) async fn check(
    State(authenticator): State<Arc<Authenticator>>,
    request: Request,
    next: Next,
) -> Response {
    let admitted = match refuse(&request, &authenticator.names) {
        Some(problem) => Err(problem),
        None => admit(&request, &authenticator),
    };
    let permit = match admitted {
        Ok(permit) => permit.map(Arc::new),
        Err(problem) => return problem.into_response(),
    };
    let mut request = request;
    if let Some(permit) = permit {
        if let Err(busy) = authenticate_connection(&request, &permit) {
            let problem = ApiProblem::new(ProblemKind::Busy, busy.to_string());
            return ([(header::CONNECTION, "close")], problem).into_response();
        }
        request.extensions_mut().insert(permit);
    }
    rejection::documented(next.run(request).await).await
}

fn refuse(request: &Request, names: &HostNames) -> Option<ApiProblem> {
    foreign(request, names).map(|why| match why {
        ForeignRequest::Page => ApiProblem::forbidden("requests of web pages are rejected"),
        ForeignRequest::Name { advice } => {
            let advice = advice.map(|advice| format!(", or {advice}")).unwrap_or_default();
            ApiProblem::forbidden(format!("unknown host name\n  hint: use an address or localhost{advice}"))
        }
    })
}

/// Checks that a request comes from no web page, and that its host name is one of this server.
pub fn foreign(request: &Request, names: &HostNames) -> Option<ForeignRequest> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Some(ForeignRequest::Page);
    }
    // Every name counts: a proxy may have checked another one than this server.
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let hosts: Vec<_> = hosts.chain(request.uri().authority().map(Authority::as_str)).collect();
    let names = names.0.load();
    let is_foreign = hosts.is_empty() || hosts.iter().any(|host| !names.admits(host));
    is_foreign.then_some(ForeignRequest::Name { advice: names.advice })
}

/// The bearer token of a request.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The permit of the caller. None on a public path.
fn admit(request: &Request, authenticator: &Authenticator) -> Result<Option<Permit>, ApiProblem> {
    match authenticator.access {
        Access::Open(by) => Ok(Some(Permit::unlimited(by))),
        Access::Tokens if authenticator.public_paths.contains(&request.uri().path()) => Ok(None),
        Access::Tokens => {
            let token = bearer(request.headers()).ok_or(TokenError::Invalid)?;
            let now = authenticator.control.clock().now().wall;
            Ok(Some(token::admit(&authenticator.control.shared(), token, now)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, hosts: &[&str]) -> Request {
        let request = Request::builder().uri(target);
        let request = hosts.iter().fold(request, |request, host| request.header(header::HOST, *host));
        request.body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn a_name_with_dots_has_to_be_in_the_settings() {
        let own = OwnHosts { names: vec!["forewarn.internal".to_owned()], ..OwnHosts::default() };
        let names = HostNames::new(own);
        let is_foreign = |host: &str| foreign(&request("/", &[host]), &names).is_some();
        assert!(!is_foreign("forewarn.internal") && !is_foreign("FOREWARN.internal:1339"));
        assert!(is_foreign("x.forewarn.internal") && is_foreign(""));
        names.set(OwnHosts { advice: Some("give up"), ..OwnHosts::default() });
        let refused = foreign(&request("/", &["forewarn.internal"]), &names);
        assert_eq!(refused, Some(ForeignRequest::Name { advice: Some("give up") }));
    }

    #[test]
    fn every_name_that_a_request_has_counts() {
        let refused =
            |target: &str, hosts: &[&str]| refuse(&request(target, hosts), &HostNames::default()).is_some();
        assert!(!refused("/", &["localhost"]) && !refused("http://127.0.0.1:1339/", &["localhost"]));
        assert!(refused("/", &[]));
        assert!(refused("/", &["localhost", "evil.example"]) && refused("/", &["evil.example", "localhost"]));
        assert!(refused("http://evil.example/", &["localhost"]));
    }
}
