//! Authentication of requests, and rejection of requests from web pages and to foreign host names.
//!
//! The API of `forewarn dev` is open to every process that can reach loopback, and that includes browsers. A request
//! of a web page has `Origin` or `Sec-Fetch-Site`, or a DNS name in `Host`: names with dots are only accepted from the
//! settings. The dashboard of this server is the only page whose requests are accepted.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::dashboard::{SESSION_PATH, is_file, is_own_page, session_of};
use super::problem::{ApiProblem, ProblemKind};
use super::realm::{REALM_PATH, REALM_PATHS};
use super::sessions::{OpenSession, Sessions};
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
    pub(super) sessions: Arc<Sessions>,
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
        None if authenticator.is_public(request.uri().path()) => admit(&request, &authenticator),
        // The realm is described from the copy of this server if its engine was restored.
        None if authenticator.is_of_restored(request.uri().path()) => admit(&request, &authenticator),
        None => match authenticator.control.confirm_reads().await {
            Ok(()) => admit(&request, &authenticator),
            Err(error) => Err(error.into()),
        },
    };
    let caller = match admitted {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let mut request = request;
    if let Some(AdmittedCaller { permit, session }) = caller {
        if let Err(busy) = authenticate_connection(&request, &permit) {
            let problem = ApiProblem::new(ProblemKind::Busy, busy.to_string());
            return ([(header::CONNECTION, "close")], problem).into_response();
        }
        request.extensions_mut().insert(permit);
        session.and_then(|session| request.extensions_mut().insert(session));
    }
    rejection::documented(next.run(request).await).await
}

fn refuse(request: &Request, names: &HostNames) -> Option<ApiProblem> {
    let foreign = foreign_name(request, names).or_else(|| foreign_page(request));
    foreign.map(|why| match why {
        ForeignRequest::Page => ApiProblem::forbidden("requests of other web pages are rejected"),
        ForeignRequest::Name { advice } => {
            let advice = advice.map(|advice| format!(", or {advice}")).unwrap_or_default();
            ApiProblem::forbidden(format!("unknown host name\n  hint: use an address or localhost{advice}"))
        }
    })
}

/// Checks that a request comes from no web page, and that its host name is one of this server.
pub fn foreign(request: &Request, names: &HostNames) -> Option<ForeignRequest> {
    if is_of_page(request.headers()) {
        return Some(ForeignRequest::Page);
    }
    foreign_name(request, names)
}

/// Checks that the sender is no web page, except the dashboard. Links may lead to its files from anywhere.
fn foreign_page(request: &Request) -> Option<ForeignRequest> {
    let headers = request.headers();
    let is_welcome = is_file(request.uri().path()) || is_own_page(headers);
    (is_of_page(headers) && !is_welcome).then_some(ForeignRequest::Page)
}

fn is_of_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site")
}

fn foreign_name(request: &Request, names: &HostNames) -> Option<ForeignRequest> {
    let headers = request.headers();
    // Every name counts: a proxy may have checked another one than this server.
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let hosts: Vec<_> = hosts.chain(request.uri().authority().map(Authority::as_str)).collect();
    let names = names.0.load();
    let is_foreign = hosts.is_empty() || hosts.iter().any(|host| !names.admits(host));
    is_foreign.then_some(ForeignRequest::Name { advice: names.advice })
}

impl Authenticator {
    /// Returns true if the engine of the realm was restored, and a path is about the realm.
    fn is_of_restored(&self, path: &str) -> bool {
        (path == REALM_PATH || path.starts_with(REALM_PATHS)) && self.control.check_engine().is_err()
    }

    /// Returns true if a path needs no token: the dashboard is static, and a login presents its token in the body.
    fn is_public(&self, path: &str) -> bool {
        self.public_paths.contains(&path) || is_file(path) || path == SESSION_PATH
    }
}

/// The bearer token of a request.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A caller whose request is admitted.
struct AdmittedCaller {
    permit: Arc<Permit>,
    /// Its session of the dashboard, if that is its credential.
    session: Option<OpenSession>,
}

impl AdmittedCaller {
    fn new(permit: Permit) -> Self {
        Self { permit: Arc::new(permit), session: None }
    }
}

/// The caller. None on a public path.
fn admit(request: &Request, authenticator: &Authenticator) -> Result<Option<AdmittedCaller>, ApiProblem> {
    match authenticator.access {
        Access::Open(by) => Ok(Some(AdmittedCaller::new(Permit::unlimited(by)))),
        Access::Tokens if authenticator.is_public(request.uri().path()) => Ok(None),
        Access::Tokens => {
            let now = authenticator.control.clock().now().wall;
            let shared = authenticator.control.shared();
            if let Some(token) = bearer(request.headers()) {
                return Ok(Some(AdmittedCaller::new(token::admit(&shared, token, now)?)));
            }
            // Without the header of the dashboard a cookie counts for nothing.
            let id = session_of(request.headers()).filter(|_| is_own_page(request.headers()));
            let admitted =
                id.and_then(|id| authenticator.sessions.admit(&id, &shared, (Instant::now(), now)));
            let (permit, session) = admitted.ok_or(TokenError::Invalid)?;
            Ok(Some(AdmittedCaller { permit: Arc::new(permit), session: Some(session) }))
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
