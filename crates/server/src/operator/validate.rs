//! Validation of a request before its handler runs: unknown parameters and malformed headers are rejected, and a body
//! has to have the content type of JSON, which no HTML form can send.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use forewarn_control::similar;

use super::header::Header;
use super::problem::ApiProblem;
use super::required_permit::RequiredPermit;
use crate::stale::RequestCluster;
use forewarn_control::Permit;

/// Query parameter of routes that read or change a cluster.
const CLUSTER: &str = "cluster";

/// Properties of a valid request to a route.
#[derive(Clone, Debug)]
pub(super) struct RouteRules {
    /// Names of query parameters.
    pub(super) query: Vec<String>,
    pub(super) headers: Vec<Header>,
    pub(super) has_body: bool,
    /// Permit that the caller needs.
    pub(super) requires: RequiredPermit,
}

pub(super) async fn check(
    State(expected): State<Arc<RouteRules>>,
    mut request: Request,
    next: Next,
) -> Response {
    if !expected.query.iter().any(|name| name == CLUSTER) {
        // The route is about the server as a whole.
        request.extensions_mut().remove::<RequestCluster>();
    }
    let permit = request.extensions().get::<Arc<Permit>>();
    let may = expected.requires.check(permit.map(Arc::as_ref)).err();
    match may.or_else(|| refuse(&expected, request.uri(), request.headers())) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refuse(expected: &RouteRules, uri: &Uri, headers: &HeaderMap) -> Option<ApiProblem> {
    if expected.has_body && !is_json(headers) {
        return Some(ApiProblem::content_type());
    }
    let pairs = match Query::<Vec<(String, String)>>::try_from_uri(uri) {
        Ok(Query(pairs)) => pairs,
        Err(problem) => return Some(ApiProblem::bad(problem.body_text())),
    };
    let is_unknown = |name: &&String| !expected.query.contains(name);
    let Some(unknown) = pairs.iter().map(|(name, _)| name).find(is_unknown) else {
        return expected.headers.iter().find_map(|header| refuse_header(*header, headers));
    };
    let hint = similar(unknown, expected.query.iter().map(String::as_str));
    let hint = hint.map(|name| format!("\n  hint: did you mean {name}?")).unwrap_or_default();
    Some(ApiProblem::bad(format!("invalid query: unknown parameter: {unknown:?}{hint}")))
}

/// Rejects a malformed or repeated header.
fn refuse_header(header: Header, headers: &HeaderMap) -> Option<ApiProblem> {
    let mut values = headers.get_all(header.name()).iter();
    let value = values.next()?;
    let is_valid = value.to_str().is_ok_and(|value| header.admits(value)) && values.next().is_none();
    (!is_valid).then(|| malformed(header))
}

/// The problem of a malformed header.
pub(super) fn malformed(header: Header) -> ApiProblem {
    ApiProblem::bad(format!("invalid {}\n  hint: {}", header.name(), header.hint()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_rejected() {
        let expected = RouteRules {
            query: vec!["limit".to_owned(), "after".to_owned()],
            headers: Vec::new(),
            has_body: false,
            requires: RequiredPermit::None,
        };
        let refused = |uri: &'static str| refuse(&expected, &Uri::from_static(uri), &HeaderMap::new());
        assert_eq!(refused("/v1/hosts?limit=1&after=2"), None);
        assert_eq!(refused("/v1/hosts?"), None);
        let problem = |detail: &str| Some(ApiProblem::bad(format!("invalid query: {detail}")));
        assert_eq!(
            refused("/v1/hosts?limt=1"),
            problem("unknown parameter: \"limt\"\n  hint: did you mean limit?")
        );
        assert_eq!(refused("/v1/hosts?x"), problem("unknown parameter: \"x\""));
    }

    #[test]
    fn malformed_and_repeated_headers_are_rejected() {
        let expected = RouteRules {
            query: Vec::new(),
            headers: vec![Header::IfMatch],
            has_body: false,
            requires: RequiredPermit::None,
        };
        let refused = |values: &[&'static str]| {
            let pair = |value: &&'static str| (header::IF_MATCH, value.parse().unwrap());
            let headers = values.iter().map(pair).chain([(header::IF_NONE_MATCH, "x".parse().unwrap())]);
            refuse(&expected, &Uri::from_static("/"), &headers.collect()).is_some()
        };
        assert!(!refused(&[]) && !refused(&["\"a\""]));
        assert!(refused(&["a"]) && refused(&[""]) && refused(&["\"a\"", "\"b\""]));
    }

    #[test]
    fn a_malformed_header_has_a_remedy() {
        let headers = HeaderMap::from_iter([("last-event-id".parse().unwrap(), "4,5".parse().unwrap())]);
        let expected = "invalid Last-Event-ID\n  hint: send the `id` of the last received event as it is";
        assert_eq!(refuse_header(Header::LastEventId, &headers), Some(ApiProblem::bad(expected)));
    }

    #[test]
    fn a_body_needs_the_content_type_of_json() {
        let expected = RouteRules {
            query: Vec::new(),
            headers: Vec::new(),
            has_body: true,
            requires: RequiredPermit::None,
        };
        let refused = |kind: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
            refuse(&expected, &Uri::from_static("/"), &headers)
        };
        assert_eq!(refused("Application/JSON; charset=utf-8"), None);
        for wrong in ["", "text/plain", "application/x-www-form-urlencoded", "application/json5"] {
            assert_eq!(refused(wrong), Some(ApiProblem::content_type()), "{wrong}");
        }
    }
}
