//! Properties of every route, and agreement of the router, the OpenAPI document and the reference page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::FromRequestParts;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::IntoResponse;
use forewarn_control::request::Administration;
use forewarn_control::{DriverKind, Fleet, HostWorkEntry, NamedCommand, Permit, ServerView};
use forewarn_lifecycle::{Name, Seed, Timestamp};
use serde_json::Value;
use tower::ServiceExt;

use super::context::OperatorRequest;
use super::header::Header;
use super::problem::{ApiProblem, ProblemKind};
use super::required_permit::RequiredPermit;
use super::route::Route;
use super::{Access, HostNames, api, openapi, router, routes};
use crate::clock::{Clock, Speed};
use crate::control_handle::ControlHandle;
use crate::scheme::Scheme;
use crate::telemetry::Telemetry;
use crate::webhooks::{WebhookSettings, WebhooksShared};

/// The reference page, and the variable that makes the test rewrite it.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/operator-api.md");
const WRITE: &str = "FOREWARN_WRITE_REFERENCE";

const FLEET: &str = r#"
    host = [{ name = "h1", zone = 1 }, { name = "h2", zone = 2 }, { name = "h3", zone = 1 }, { name = "h4" }]
    vm = [{ name = "solo", host = "h1" }, { name = "other", host = "h2" }]
    availability_set = [{ name = "db", machine = [{ name = "db-0", host = "h1" }, { name = "db-1", host = "h2" }] }]
"#;

pub(super) struct TestServer {
    pub(super) control: ControlHandle,
    pub(super) shared: super::Api,
    router: Router,
}

impl TestServer {
    pub(super) fn new(access: Access) -> Self {
        let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
        let control = ControlHandle::simulated(Seed([7; 16]), clock);
        control.directory().permit_faults();
        let about = ServerView {
            version: String::new(),
            mode: "dev".to_owned(),
            metadata: Vec::new(),
            prefix: true,
            default_machine: None,
            arm: None,
            driver: DriverKind::Simulated,
        };
        let telemetry = Telemetry::new();
        let webhooks = WebhooksShared::new(control.clone(), &WebhookSettings::default(), &telemetry);
        let shared = api(control.clone(), about, telemetry, webhooks, None);
        let router = router(shared.clone(), access, Scheme::Http, HostNames::default());
        Self { control, shared, router }
    }

    async fn with_fleet() -> Self {
        let api = Self::new(Access::Open("anyone"));
        let fleet = serde_json::to_string(&Fleet::parse(FLEET).unwrap()).unwrap();
        assert_eq!(api.send(Method::POST, "/v1/fleet", "application/json", fleet).await.0, StatusCode::OK);
        api
    }

    /// Status, headers and body of a response; an error has to be a problem document.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Body>,
    ) -> (StatusCode, axum::http::HeaderMap, Value) {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        let request = request.header(header::CONTENT_TYPE, content_type).body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !status.is_success() {
            assert_eq!(headers[header::CONTENT_TYPE], ApiProblem::CONTENT_TYPE, "{path}");
            assert_eq!(body["status"], status.as_u16(), "{path}");
            let kinds = ProblemKind::ALL.map(ProblemKind::reference);
            assert!(kinds.iter().any(|kind| body["type"] == *kind), "{path}: {body}");
        }
        (status, headers, body)
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let (status, _, body) = self.send(Method::GET, path, "", Body::empty()).await;
        (status, body)
    }
}

/// Replaces path parameters by their names.
fn filled(path: &str) -> String {
    path.replace(['{', '}'], "")
}

#[tokio::test]
async fn every_path_rejects_other_methods_and_lists_its_own() {
    let api = TestServer::with_fleet().await;
    let mut methods = BTreeMap::<_, BTreeSet<_>>::new();
    for route in routes::routes() {
        methods.entry(route.path).or_default().insert(route.method.to_string());
    }
    for (path, mut methods) in methods {
        let (status, headers, _) = api.send(Method::TRACE, &filled(path), "", Body::empty()).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        if methods.contains("GET") {
            methods.insert("HEAD".to_owned());
        }
        let allowed: BTreeSet<_> =
            headers[header::ALLOW].to_str().unwrap().split(',').map(str::to_owned).collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

#[tokio::test]
async fn every_route_rejects_an_unknown_parameter() {
    let api = TestServer::with_fleet().await;
    for route in routes::routes() {
        let path = format!("{}?nonsense=1", filled(route.path));
        let (status, _, body) = api.send(route.method, &path, "application/json", "{}").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let detail = "invalid query: unknown parameter: \"nonsense\"";
        assert_eq!(body["detail"], detail, "{path}");
    }
}

#[tokio::test]
async fn a_missing_cluster_is_not_found() {
    let api = TestServer::with_fleet().await;
    for route in
        routes::routes().into_iter().filter(|route| route.query_names().contains(&"cluster".to_owned()))
    {
        let path = format!("{}?cluster=unknown", filled(route.path));
        let (status, _, body) = api.send(route.method, &path, "application/json", "{}").await;
        assert_eq!(
            (status, &body["hint"]),
            (StatusCode::NOT_FOUND, &"known clusters: default".into()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn every_body_is_json_and_no_longer_than_its_limit() {
    let api = TestServer::with_fleet().await;
    for route in routes::routes() {
        let Some(body) = &route.body else { continue };
        let longest = " ".repeat(body.bytes_max);
        for (kind, body, expected) in [
            ("text/plain", "{}".to_owned(), StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("application/json", format!("{longest} "), StatusCode::PAYLOAD_TOO_LARGE),
            ("application/json", longest, StatusCode::BAD_REQUEST),
            ("application/json", "[]".to_owned(), StatusCode::BAD_REQUEST),
        ] {
            let (status, _, _) = api.send(route.method.clone(), &filled(route.path), kind, body).await;
            assert_eq!(status, expected, "{} {kind}", route.path);
        }
    }
}

#[tokio::test]
async fn without_a_token_only_public_routes_respond() {
    let api = TestServer::new(Access::Tokens);
    for route in routes::routes() {
        let (status, headers, _) =
            api.send(route.method, &filled(route.path), "application/json", "{}").await;
        let is_refused = status == StatusCode::UNAUTHORIZED;
        assert_eq!(is_refused, route.requires != RequiredPermit::None, "{}", route.path);
        assert_eq!(headers.contains_key(header::WWW_AUTHENTICATE), is_refused, "{}", route.path);
    }
    assert_eq!(api.get("/v1/nothing").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(TestServer::new(Access::Open("anyone")).get("/v1/nothing").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_fleet_that_is_applied_is_one_command_whatever_goes_after_it() {
    let api = TestServer::with_fleet().await;
    let fleet = serde_json::json!({ "host": [{ "name": "h4" }] }).to_string();
    let path = "/v1/fleet?unmentioned=remove";
    let (_, _, report) = api.send(Method::POST, path, "application/json", fleet).await;
    assert!(report["differences"].as_array().unwrap().len() > 4, "{report}");
    let page = api.control.read_audit_log(forewarn_store::AuditQuery::default()).await.unwrap();
    let entries: Vec<_> = page.entries.into_iter().map(|logged| logged.entry).collect();
    let commands: Vec<_> = entries.iter().filter(|entry| entry.kind == "command").collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let left = entries.iter().find(|entry| entry.text.contains("host h1 was removed")).unwrap();
    assert_eq!((left.by.as_str(), left.because), ("anyone", Some(commands[1].number)));
}

/// promise: C4
#[tokio::test]
async fn a_fleet_that_is_refused_names_the_entry_and_its_line() {
    let api = TestServer::with_fleet().await;
    let cases = [
        (
            "{\"vm\": [\n {\"name\": \"n1\", \"host\": \"h1\"},\n {\"name\": \"n2\",\n \"host\": \"nowhere\"}]}",
            ("/vm/1/host", 4),
            "no such host: nowhere",
        ),
        ("{\"host\": [\n {\"name\": \"x\"},\n {\"name\": \"x\"}]}", ("/host/1/name", 3), "x is listed twice"),
        ("{\"host\": [\n {\"name\": \"a/b\"}]}", ("/host/0/name", 2), "invalid name \"a/b\""),
        (
            "{\"vm\": [\n {\"name\": \"n1\", \"host\": \"h1\", \"addresses\": [\"10.9.9.9\"]},\n \
             {\"name\": \"n2\", \"host\": \"h1\", \"addresses\": [\"10.9.9.9\"]}]}",
            ("/vm/1/addresses", 3),
            "address 10.9.9.9 is already used",
        ),
        (
            "{\"availability_set\": [{\"name\": \"n3\", \"machine\": [\n {\"name\": \"a\", \"host\": \"h1\"},\n \
             {\"name\": \"b\", \"host\": \"h1\", \"update_domain\": 1}]}]}",
            ("/availability_set/0/machine/1/update_domain", 3),
            "on host h1, n3 already has update domain 0",
        ),
        // A move that is listed and not applied does not shift the position.
        (
            "{\"vm\": [\n {\"name\": \"solo\", \"host\": \"h3\"},\n {\"name\": \"n2\", \"host\": \"nowhere\"}]}",
            ("/vm/1/host", 3),
            "no such host: nowhere",
        ),
        (
            "\u{feff}{\"vm\": [\n {\"name\": \"n1\", \"host\": \"nowhere\"}]}",
            ("/vm/0/host", 2),
            "no such host: nowhere",
        ),
    ];
    for path in ["/v1/fleet", "/v1/fleet?dry_run=true"] {
        for (body, (pointer, line), words) in cases {
            let (_, _, problem) = api.send(Method::POST, path, "application/json", body).await;
            assert_eq!((&problem["pointer"], &problem["line"]), (&pointer.into(), &line.into()), "{problem}");
            assert!(problem["detail"].as_str().unwrap().starts_with(words), "{problem}");
        }
    }
    let (_, _, other) = api.send(Method::POST, "/v1/commands", "application/json", "{}").await;
    assert_eq!(other.get("pointer"), None, "other problems have no position: {other}");
}

#[tokio::test]
async fn pages_of_any_size_come_to_the_same_list() {
    let api = TestServer::with_fleet().await;
    let work = [
        NamedCommand::UpdateHosts(HostWorkEntry::on(vec!["h1".to_owned()])),
        NamedCommand::RebootHosts(HostWorkEntry::on(vec!["h2".to_owned()])),
        NamedCommand::Restart { machine: "solo".to_owned() },
        NamedCommand::BrakeOn {},
    ];
    for tenant in ["solo", "db", "other"] {
        let id = move |state: &crate::snapshot::State<'_>| state.cluster.tenant_named(tenant).unwrap();
        let tenant = api.control.look(id).unwrap();
        api.control.submit(forewarn_lifecycle::Command::Enrol(tenant)).await.unwrap();
    }
    for command in work {
        api.control.run_commands(vec![command]).await.unwrap();
    }
    for (list, count) in [
        ("/v1/hosts?", 4),
        ("/v1/hosts?zone=1&", 2),
        ("/v1/hosts?health=failed&", 0),
        ("/v1/machines?", 4),
        ("/v1/machines?tenant=db&", 2),
        ("/v1/machines?host=h1&", 2),
        ("/v1/machines?host=h1&tenant=db&", 1),
        ("/v1/tenants?", 3),
        ("/v1/events?", 5),
        ("/v1/events?tenant=db&", 2),
        ("/v1/events?kind=Reboot&", 3),
        ("/v1/events?status=Started&", 0),
        ("/v1/rollouts?", 2),
    ] {
        let (_, whole) = api.get(&format!("{list}limit=1000")).await;
        assert_eq!(
            (whole["items"].as_array().unwrap().len(), &whole["next"]),
            (count, &Value::Null),
            "{list}"
        );
        for limit in 1..=count {
            let mut path = format!("{list}limit={limit}");
            let mut items = Vec::new();
            loop {
                let (_, headers, page) = api.send(Method::GET, &path, "", Body::empty()).await;
                items.extend(page["items"].as_array().unwrap().clone());
                let Some(next) = page["next"].as_str() else { break };
                path = format!("{list}limit={limit}&after={next}");
                assert_eq!(headers[header::LINK], format!("<{path}>; rel=\"next\""));
            }
            assert_eq!(Value::Array(items), whole["items"], "{list} by {limit}");
        }
    }
}

#[tokio::test]
async fn a_page_has_a_size_and_an_end_that_was_given() {
    let api = TestServer::with_fleet().await;
    for wrong in ["limit=0", "limit=1001", "limit=x", "after=", "after=+1", "after=1F", "limit=1&limit=2"] {
        assert_eq!(api.get(&format!("/v1/hosts?{wrong}")).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let (status, page) = api.get("/v1/hosts?after=ffffffffffffffffffffffffffffffff").await;
    assert_eq!((status, page["items"].as_array().map(Vec::len)), (StatusCode::OK, Some(0)));
}

#[tokio::test]
async fn a_missing_resource_is_not_found_whatever_if_match_is() {
    let api = TestServer::with_fleet().await;
    for (method, path, body) in [
        (Method::DELETE, "/v1/clusters/none", ""),
        (Method::DELETE, "/v1/tokens/none", ""),
        (Method::PUT, "/v1/tenants/none/policy", "{}"),
        (Method::POST, "/v1/scalesets/none/upgrade", r#"{"instances":"all"}"#),
    ] {
        for (tags, expected) in [("*", 404), ("\"x\"", 404), ("x", 400)] {
            let request =
                Request::builder().method(method.clone()).uri(path).header(header::HOST, "localhost");
            let request = request.header(header::CONTENT_TYPE, "application/json").header("If-Match", tags);
            let response = api.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
            assert_eq!(response.status(), expected, "{method} {path} {tags}");
        }
    }
}

#[tokio::test]
async fn a_change_whose_headers_cannot_be_read_is_a_bad_request() {
    let api = TestServer::new(Access::Open("anyone"));
    for (name, value) in [("If-Match", &b"\"\xff\""[..]), ("Idempotency-Key", b"\xff")] {
        let request = Request::builder().header(name, HeaderValue::from_bytes(value).unwrap());
        let request = request.extension(Arc::new(Permit::unlimited("anyone")));
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let request = OperatorRequest::from_request_parts(&mut parts, &api.shared).await.unwrap();
        let change = Administration::RemoveCluster(Name::new("none").unwrap());
        let problem = request.administer_if(&api.control, change, b"", |_| None).await.unwrap_err();
        assert_eq!(problem.into_response().status(), StatusCode::BAD_REQUEST, "{name}");
    }
}

#[tokio::test]
async fn audit_filters_accept_valid_names_only() {
    let api = TestServer::with_fleet().await;
    for right in ["tenant=gone", "host=...", "machine=a/b", "event=00000000-0000-0000-0000-000000000000"] {
        assert_eq!(api.get(&format!("/v1/audit?{right}")).await.0, StatusCode::OK, "{right}");
    }
    for wrong in
        ["tenant=", "tenant=a/b", "host=..", "machine=/", "machine=a/b/c", "event=000", "event=wrong"]
    {
        assert_eq!(api.get(&format!("/v1/audit?{wrong}")).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

/// promise: C5
#[tokio::test]
async fn pages_of_the_audit_log_are_continued_by_their_cursors() {
    let api = TestServer::with_fleet().await;
    let (_, whole) = api.get("/v1/audit?limit=1000&order=oldest").await;
    let all = whole["items"].as_array().unwrap();
    assert!(all.len() > 10 && whole.get("next").is_none() && whole.get("swept").is_none(), "{whole}");
    for (order, parameter) in [("oldest", "after"), ("newest", "before")] {
        let (mut read, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) = api.get(&format!("/v1/audit?limit=3&order={order}{cursor}")).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            read.extend(page["items"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&{parameter}={next}");
        }
        if order == "newest" {
            read.reverse();
        }
        assert_eq!(&read, all, "{order}");
    }
    let head = whole["head"].as_str().unwrap();
    let (_, none) = api.get(&format!("/v1/audit?order=oldest&after={head}")).await;
    assert_eq!(none["items"].as_array().map(Vec::len), Some(0));
    let (malformed, beyond_the_end) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
    for (path, expected) in [
        ("/v1/audit?after=x", malformed),
        ("/v1/audit?before=-1", malformed),
        ("/v1/audit/export?after=", malformed),
        ("/v1/audit?after=1F", malformed),
        ("/v1/audit?after=99999", beyond_the_end),
        ("/v1/audit?before=99999", beyond_the_end),
        ("/v1/audit/export?after=99999", beyond_the_end),
        ("/v1/machines/solo/explanation?before=99999", beyond_the_end),
    ] {
        let (status, problem) = api.get(path).await;
        let text = problem.to_string();
        assert!(status == expected && text.contains("hint: "), "{path}: {text}");
    }
}

#[test]
fn references_of_the_openapi_document_resolve() {
    let routes = routes::routes();
    let document = openapi::document(&routes, &Access::Open("anyone"));
    let operations: BTreeMap<_, _> = routes.iter().map(|route| (route.id, route)).collect();
    assert_eq!(operations.len(), routes.len(), "an operation is named twice");
    for route in &routes {
        let parts: Vec<_> =
            route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(
            route.path_parameters.iter().map(|part| part.name).collect::<Vec<_>>(),
            parts,
            "{}",
            route.path
        );
        for link in &route.links {
            let to = operations[link.to];
            let known = |name: &str| {
                to.path_parameters.iter().any(|part| part.name == name)
                    || to.query_names().contains(&name.to_owned())
                    || to.headers.iter().any(|header| header.name() == name)
            };
            assert!(link.parameters.iter().all(|(name, _)| known(name)), "{} -> {}", route.id, link.to);
            assert!(link.body.is_none() || to.body.is_some(), "{} -> {}", route.id, link.to);
        }
    }
    let mut references = 0;
    let mut left = vec![&document];
    while let Some(value) = left.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
            references += 1;
        }
        left.extend(value.as_array().into_iter().flatten());
        left.extend(value.as_object().into_iter().flat_map(|members| members.values()));
    }
    assert!(references > 100, "{references}");
}

#[test]
fn request_schemas_omit_members_with_defaults() {
    let document = openapi::document(&routes::routes(), &Access::Open("anyone"));
    let required = |name: &str| document["components"]["schemas"][name]["required"].clone();
    assert_eq!(required("PolicyEntryRequest"), Value::Null);
    assert_eq!(required("PolicyEntry"), serde_json::json!(["restart", "redeploy", "all_down"]));
}

/// The reference page has the routes and problems of the code. With the variable set, the test rewrites it.
#[test]
fn the_reference_page_has_every_route_and_every_problem() {
    let text = std::fs::read_to_string(REFERENCE).unwrap();
    let mut expected = text.clone();
    replace(&mut expected, "routes", &routes_for_people());
    replace(&mut expected, "problems", &problems_for_people());
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(REFERENCE, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "docs/reference/operator-api.md is not up to date\n  hint: {WRITE}=1");
    }
}

fn replace(text: &mut String, section: &str, content: &str) {
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- end of {section} -->\n"));
    let from = text.find(&begin).expect(section) + begin.len();
    let to = text.find(&end).expect(section);
    text.replace_range(from..to, &format!("\n{content}\n"));
}

fn routes_for_people() -> String {
    let mut text = "| request | role | |\n|---|---|---|\n".to_owned();
    for route in routes::routes() {
        let Route { method, path, requires, summary, .. } = &route;
        let query = route.query_names().join("&");
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let tag = if route.is_tagged() { "; with an `ETag`" } else { "" };
        let edited = if route.headers.contains(&Header::IfMatch) { "; takes `If-Match`" } else { "" };
        writeln!(text, "| `{method} {path}{query}` | {} | {summary}{tag}{edited} |", requires.word())
            .unwrap();
    }
    text
}

fn problems_for_people() -> String {
    let mut text = "| status | `type` | `title` |\n|---|---|---|\n".to_owned();
    for kind in ProblemKind::ALL {
        writeln!(text, "| {} | `{}` | {} |", kind.status().as_u16(), kind.reference(), kind.title()).unwrap();
    }
    text
}
