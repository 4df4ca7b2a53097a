//! What is checked before a handler runs, by what its route says: parameters that mean nothing are refused, and a body has to
//! say that it is JSON, which no form of a web page can.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use forewarn_control::similar;

use super::fault::Fault;
use super::header::Header;
use super::needs::Needs;
use forewarn_control::Permit;

/// What a route expects of a request.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The names of parameters.
    pub(super) query: Vec<String>,
    pub(super) headers: Vec<Header>,
    pub(super) has_body: bool,
    /// What whoever asks needs.
    pub(super) needs: Needs,
}

pub(super) async fn check(State(expected): State<Arc<Expected>>, request: Request, next: Next) -> Response {
    let permit = request.extensions().get::<Arc<Permit>>();
    let may = expected.needs.check(permit.map(Arc::as_ref)).err();
    match may.or_else(|| refuse(&expected, request.uri(), request.headers())) {
        Some(fault) => fault.into_response(),
        None => next.run(request).await,
    }
}

fn refuse(expected: &Expected, uri: &Uri, headers: &HeaderMap) -> Option<Fault> {
    if expected.has_body && !is_json(headers) {
        return Some(Fault::content_type());
    }
    let pairs = match Query::<Vec<(String, String)>>::try_from_uri(uri) {
        Ok(Query(pairs)) => pairs,
        Err(problem) => return Some(Fault::bad(problem.body_text())),
    };
    let is_unknown = |name: &&String| !expected.query.contains(name);
    let Some(unknown) = pairs.iter().map(|(name, _)| name).find(is_unknown) else {
        return expected.headers.iter().find_map(|header| refuse_header(*header, headers));
    };
    let hint = similar(unknown, expected.query.iter().map(String::as_str));
    let hint = hint.map(|name| format!("\n  hint: did you mean {name}?")).unwrap_or_default();
    Some(Fault::bad(format!("the query is not understood: this parameter is not known: {unknown:?}{hint}")))
}

/// A header may not say what means nothing, and not two things at once.
fn refuse_header(header: Header, headers: &HeaderMap) -> Option<Fault> {
    let mut said = headers.get_all(header.name()).iter();
    let value = said.next()?;
    let is_right = value.to_str().is_ok_and(|value| header.admits(value)) && said.next().is_none();
    let hint = header.about();
    (!is_right).then(|| Fault::bad(format!("{} is not understood\n  hint: {hint}", header.name())))
}

fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_that_mean_something_are_let_pass() {
        let expected = Expected {
            query: vec!["limit".to_owned(), "after".to_owned()],
            headers: Vec::new(),
            has_body: false,
            needs: Needs::Nothing,
        };
        let refused = |uri: &'static str| refuse(&expected, &Uri::from_static(uri), &HeaderMap::new());
        assert_eq!(refused("/v1/hosts?limit=1&after=2"), None);
        assert_eq!(refused("/v1/hosts?"), None);
        let fault = |detail: &str| Some(Fault::bad(format!("the query is not understood: {detail}")));
        assert_eq!(
            refused("/v1/hosts?limt=1"),
            fault("this parameter is not known: \"limt\"\n  hint: did you mean limit?")
        );
        assert_eq!(refused("/v1/hosts?x"), fault("this parameter is not known: \"x\""));
    }

    #[test]
    fn a_header_says_one_thing_that_means_something() {
        let expected = Expected {
            query: Vec::new(),
            headers: vec![Header::IfMatch],
            has_body: false,
            needs: Needs::Nothing,
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
    fn a_body_says_that_it_is_json() {
        let expected =
            Expected { query: Vec::new(), headers: Vec::new(), has_body: true, needs: Needs::Nothing };
        let refused = |kind: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
            refuse(&expected, &Uri::from_static("/"), &headers)
        };
        assert_eq!(refused("Application/JSON; charset=utf-8"), None);
        for wrong in ["", "text/plain", "application/x-www-form-urlencoded", "application/json5"] {
            assert_eq!(refused(wrong), Some(Fault::content_type()), "{wrong}");
        }
    }
}
