//! Checks of requests and of the head of responses.

use forewarn_http_client::{HttpResponse, Method, Request};
use forewarn_imds::{Edition, parse_date};
use serde_json::Value;

use crate::catalogue as c;
use crate::check::Check;
use crate::endpoint::{EVENTS_PATH, Endpoint, with};
use crate::report::Results;

/// The body of the refusal of a request without the header field.
const HEADER_ERROR: &str = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;

/// Why paths outside `/metadata` are not judged.
const BELOW_PATH: &str = "the base URL has a path";

/// Versions that no edition has.
const UNKNOWN_VERSIONS: [&str; 4] = ["2020-06-31", "latest", "01-04-2019", "2020-07-01x"];

pub(crate) async fn check(endpoint: &Endpoint, results: &mut Results) {
    header(endpoint, results).await;
    versions(endpoint, results).await;
    callers(endpoint, results).await;
    paths(endpoint, results).await;
    methods(endpoint, results).await;
    head_of_responses(endpoint, results).await;
}

async fn header(endpoint: &Endpoint, results: &mut Results) {
    let events = Endpoint::events(Edition::newest());
    let refused = endpoint.send(&endpoint.bare(Method::GET, &events)).await;
    results.judge(&c::METADATA_HEADER_REQUIRED, refused.clone().and_then(|response| status(&response, 400)));
    if let Ok(response) = refused.as_ref()
        && response.status == 400
    {
        let known = response.body == HEADER_ERROR;
        let shown = || format!("the body is {}", String::from_utf8_lossy(&response.body));
        results.judge(&c::METADATA_HEADER_ERROR, known.then_some(()).ok_or_else(shown));
        results.judge(&c::ERROR_JSON, error_json(response));
    } else {
        results.cannot_run(&c::METADATA_HEADER_ERROR, "the request was not refused");
    }
    let capital = with(endpoint.bare(Method::GET, &events), "metadata", "True");
    results.judge(&c::METADATA_HEADER_CASE, expect(endpoint, &capital, 200).await);
    if endpoint.is_below_path() {
        results.cannot_run(&c::METADATA_HEADER_FIRST, BELOW_PATH);
    } else {
        let root = expect(endpoint, &endpoint.bare(Method::GET, "/"), 400).await;
        results.judge(&c::METADATA_HEADER_FIRST, root);
    }
    let preview = endpoint.bare(Method::GET, &Endpoint::events(Edition::V2017_03_01));
    results.judge(&c::PREVIEW_WITHOUT_HEADER, expect(endpoint, &preview, 200).await);
}

async fn versions(endpoint: &Endpoint, results: &mut Results) {
    for edition in Edition::ALL {
        let request = endpoint.get(&Endpoint::events(edition));
        results.judge(&c::EDITIONS_SERVED, expect(endpoint, &request, 200).await);
    }
    let without = endpoint.get(EVENTS_PATH);
    results.judge(&c::VERSION_REQUIRED, expect(endpoint, &without, 400).await);
    for version in UNKNOWN_VERSIONS {
        let request = endpoint.get(&format!("{EVENTS_PATH}?api-version={version}"));
        let response = endpoint.send(&request).await;
        let judged = response.clone().and_then(|response| status(&response, 400));
        results.judge(&c::VERSION_UNKNOWN, judged.map_err(|why| format!("api-version={version}: {why}")));
        if let Ok(response) = response
            && response.status == 400
        {
            results.judge(&c::VERSION_ERROR, newest_versions(&response));
            results.judge(&c::ERROR_JSON, error_json(&response));
        }
    }
    results.cannot_run(&c::VERSION_ERROR, "no request was refused");
    let newest = Edition::newest().as_str();
    let twice = endpoint.get(&format!("{EVENTS_PATH}?api-version={newest}&api-version={newest}"));
    results.judge(&c::PARAMETER_TWICE, expect(endpoint, &twice, 400).await);
}

async fn callers(endpoint: &Endpoint, results: &mut Results) {
    let events = || endpoint.get(&Endpoint::events(Edition::newest()));
    let forwarded = with(events(), "x-forwarded-for", "198.51.100.7");
    results.judge(&c::FORWARDED_REFUSED, expect(endpoint, &forwarded, 400).await);
    let others = [
        ("forwarded", "for=198.51.100.7"),
        ("via", "1.1 proxy"),
        ("x-real-ip", "198.51.100.7"),
        ("origin", "http://site.example"),
        ("sec-fetch-site", "cross-site"),
    ];
    for (name, value) in others {
        let judged = refused(endpoint, &with(events(), name, value)).await;
        results.judge(&c::PROXY_HEADERS_REFUSED, judged.map_err(|why| format!("{name}: {why}")));
    }
    let rebound = with(events(), "host", "metadata.site.example");
    results.judge(&c::HOST_NAME_REFUSED, refused(endpoint, &rebound).await);
}

async fn paths(endpoint: &Endpoint, results: &mut Results) {
    let newest = Edition::newest().as_str();
    let query = format!("?api-version={newest}");
    let cases = [
        (&c::PATH_UNKNOWN, format!("/metadata/nothing{query}"), 404),
        (&c::PATH_OUTSIDE, format!("/nothing{query}"), 404),
        (&c::PATH_CASE, format!("/metadata/scheduledEvents{query}"), 200),
        (&c::PATH_ENCODED, format!("{EVENTS_PATH}%3Fapi-version={newest}"), 200),
        (&c::PATH_SLASH, format!("{EVENTS_PATH}/{query}"), 200),
    ];
    if endpoint.is_below_path() {
        results.cannot_run(&c::PATH_OUTSIDE, BELOW_PATH);
    }
    let possible = |check: &Check| check.id != c::PATH_OUTSIDE.id || !endpoint.is_below_path();
    for (check, target, wanted) in cases.into_iter().filter(|(check, ..)| possible(check)) {
        results.judge(check, expect(endpoint, &endpoint.get(&target), wanted).await);
    }
}

async fn methods(endpoint: &Endpoint, results: &mut Results) {
    let target = Endpoint::events(Edition::newest());
    for method in [Method::PUT, Method::DELETE] {
        let request = with(endpoint.bare(method.clone(), &target), "metadata", "true");
        let judged = endpoint.send(&request).await.and_then(|response| {
            status(&response, 405)?;
            let allowed = response.header("allow").unwrap_or_default();
            let complete = allowed.contains("GET") && allowed.contains("POST");
            complete.then_some(()).ok_or_else(|| format!("`Allow` is {allowed:?}"))
        });
        results.judge(&c::METHOD_REFUSED, judged.map_err(|why| format!("{method}: {why}")));
    }
    let head = with(endpoint.bare(Method::HEAD, &target), "metadata", "true");
    results.judge(&c::HEAD_REFUSED, expect(endpoint, &head, 405).await);
}

async fn head_of_responses(endpoint: &Endpoint, results: &mut Results) {
    let request = endpoint.get(&Endpoint::events(Edition::newest()));
    let Ok(response) = endpoint.send(&request).await else { return };
    let field = |name| response.header(name).unwrap_or_default();
    let kind = field("content-type");
    let is_json = kind.eq_ignore_ascii_case("application/json; charset=utf-8");
    results
        .judge(&c::CONTENT_TYPE, is_json.then_some(()).ok_or_else(|| format!("`Content-Type` is {kind:?}")));
    let server = field("server");
    let named = server.contains("IMDS");
    results
        .judge(&c::SERVER_NAMES_IMDS, named.then_some(()).ok_or_else(|| format!("`Server` is {server:?}")));
    let date = field("date");
    let dated = parse_date(date).is_some();
    results.judge(&c::DATE_PRESENT, dated.then_some(()).ok_or_else(|| format!("`Date` is {date:?}")));
    let tag = field("etag").to_owned();
    let judged = match forewarn_http_client::HeaderValue::from_str(&tag) {
        Ok(value) if !tag.is_empty() => {
            let name = forewarn_http_client::header::IF_NONE_MATCH;
            expect(endpoint, &request.with(name, value), 304).await
        }
        Ok(_) | Err(_) => Err("there is no `ETag`".to_owned()),
    };
    results.judge(&c::ETAG_MATCHED, judged);
}

/// The body of a refused version: an error, and a list of versions.
fn newest_versions(response: &HttpResponse) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&response.body).map_err(|error| format!("not JSON: {error}"))?;
    let versions = body.get("newest-versions").and_then(Value::as_array);
    let versions = versions.ok_or_else(|| "there is no list `newest-versions`".to_owned())?;
    let known = versions.iter().any(|version| version == Edition::newest().as_str());
    known.then_some(()).ok_or_else(|| format!("`newest-versions` lacks {}", Edition::newest().as_str()))
}

fn error_json(response: &HttpResponse) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&response.body).map_err(|error| format!("not JSON: {error}"))?;
    body.get("error").map(|_| ()).ok_or_else(|| "there is no member `error`".to_owned())
}

/// Checks the status of a response.
pub(crate) fn status(response: &HttpResponse, wanted: u16) -> Result<(), String> {
    let found = response.status;
    (found == wanted).then_some(()).ok_or_else(|| format!("the status is {found}, not {wanted}"))
}

async fn expect(endpoint: &Endpoint, request: &Request, wanted: u16) -> Result<(), String> {
    endpoint.send(request).await.and_then(|response| status(&response, wanted))
}

/// A request that must not be served. A connection that is closed is a refusal, too.
pub(crate) async fn refused(endpoint: &Endpoint, request: &Request) -> Result<(), String> {
    match endpoint.send(request).await {
        Ok(response) if (200..400).contains(&response.status) => {
            Err(format!("the status is {}, not an error", response.status))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
