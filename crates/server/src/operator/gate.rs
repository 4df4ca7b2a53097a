//! Who may not even ask: web pages, and names that somebody else may have pointed here.
//!
//! The API of `forewarn dev` is open to whoever can reach loopback, and a browser can: what a page sends carries `Origin`
//! or `Sec-Fetch-Site`, and a name in `Host`. Names with dots are admitted only where the settings have them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::fault::Fault;
use super::token::{self, NotAdmitted};
use super::{Access, rejection};
use crate::clients::Standing;
use crate::control_handle::ControlHandle;
use forewarn_control::Permit;
use forewarn_url::is_own_host;

/// Who may ask, and for what without a token.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) access: Access,
    pub(super) names: HostNames,
    pub(super) engine: ControlHandle,
    /// Paths that need none: a supervisor has none.
    pub(super) free: Vec<&'static str>,
}

/// A request that is rejected whatever it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignRequest {
    /// A web page has sent it.
    Page,
    /// Its host name is not one of this server: another domain may resolve to this address.
    Name,
}

/// Names with dots by which the API may be called. They can be changed while it serves.
#[derive(Clone, Debug, Default)]
pub struct HostNames(Arc<ArcSwap<Vec<String>>>);

impl HostNames {
    /// These.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(names)))
    }

    /// From now on, these.
    pub fn set(&self, names: Vec<String>) {
        self.0.store(Arc::new(names));
    }

    /// Returns true if `Host` is one of these names, or one that no other domain has.
    fn admits(&self, host: &str) -> bool {
        is_own_host(host, &self.0.load())
    }
}

pub(super) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let admitted = match refuse(&request, &gate.names) {
        Some(fault) => Err(fault),
        None => admit(&request, &gate),
    };
    match admitted {
        Err(fault) => fault.into_response(),
        Ok(permit) => {
            let mut request = request;
            if let Some(permit) = permit.map(Arc::new) {
                authenticate_connection(&request, &permit);
                request.extensions_mut().insert(permit);
            }
            rejection::documented(next.run(request).await).await
        }
    }
}

/// Records that the connection of a request has authenticated.
pub fn authenticate_connection(request: &Request, permit: &Arc<Permit>) {
    if let Some(standing) = request.extensions().get::<Arc<Standing>>() {
        standing.authenticate(permit);
    }
}

fn refuse(request: &Request, names: &HostNames) -> Option<Fault> {
    foreign(request, names).map(|why| match why {
        ForeignRequest::Page => Fault::forbidden("not for web pages"),
        ForeignRequest::Name => Fault::forbidden(
            "not by that name\n  hint: use the address, or localhost; or have the name in api.host_names",
        ),
    })
}

/// Checks that a request comes from no web page, and that its host name is one of this server.
pub fn foreign(request: &Request, names: &HostNames) -> Option<ForeignRequest> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Some(ForeignRequest::Page);
    }
    // With two names, or another one in the request line, somebody on the way may have looked at the wrong one.
    let told = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let told: Vec<_> = told.chain(request.uri().authority().map(Authority::as_str)).collect();
    let is_foreign = told.is_empty() || told.iter().any(|host| !names.admits(host));
    is_foreign.then_some(ForeignRequest::Name)
}

/// The bearer token of a request.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What whoever asks may do; nothing, if that does not matter.
fn admit(request: &Request, gate: &Gate) -> Result<Option<Permit>, Fault> {
    match gate.access {
        Access::Open(by) => Ok(Some(Permit::unlimited(by))),
        Access::Tokens if gate.free.contains(&request.uri().path()) => Ok(None),
        Access::Tokens => {
            let token = bearer(request.headers()).ok_or(NotAdmitted::Wrong)?;
            let now = gate.engine.clock().now().wall;
            Ok(Some(token::admit(&gate.engine.shared(), token, now)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_dots_has_to_be_in_the_settings() {
        let names = HostNames::new(vec!["forewarn.internal".to_owned()]);
        for known in ["forewarn.internal", "FOREWARN.internal:1339"] {
            assert!(names.admits(known), "{known}");
        }
        for other in ["", "x.forewarn.internal", "forewarn.internal:x", "forewarn.internal."] {
            assert!(!names.admits(other), "{other}");
        }
        names.set(Vec::new());
        assert!(!names.admits("forewarn.internal"));
    }

    #[test]
    fn every_name_that_a_request_has_counts() {
        let refused = |target: &str, hosts: &[&str]| {
            let request = Request::builder().uri(target);
            let request = hosts.iter().fold(request, |request, host| request.header(header::HOST, *host));
            refuse(&request.body(axum::body::Body::empty()).unwrap(), &HostNames::default()).is_some()
        };
        assert!(!refused("/", &["localhost"]) && !refused("http://127.0.0.1:1339/", &["localhost"]));
        assert!(refused("/", &[]));
        assert!(refused("/", &["localhost", "evil.example"]) && refused("/", &["evil.example", "localhost"]));
        assert!(refused("http://evil.example/", &["localhost"]));
    }
}
