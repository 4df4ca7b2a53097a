//! Permits of scale set routes, and concurrent changes.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use forewarn_control::shared::Scope;
use forewarn_control::{CommandJson, DriverKind, ServerView};
use forewarn_lifecycle::{Name, Seed, Timestamp};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::super::{Access, HostNames, Secret, api, hash, router};
use super::*;
use crate::clock::{Clock, Speed};
use crate::control_handle::ControlHandle;
use crate::scheme::Scheme;
use crate::telemetry::Telemetry;
use crate::webhooks::{WebhookSettings, WebhooksShared};
use forewarn_control::NamedCommand;
use forewarn_control::request::Administration;

/// Six hosts, the scale sets `web` with two instances and `db` with one, and the availability set `sql`.
struct ScaleSetTestServer {
    control: ControlHandle,
    router: Router,
}

impl ScaleSetTestServer {
    async fn new() -> Self {
        let control =
            ControlHandle::simulated(Seed([7; 16]), Clock::virtual_at(Timestamp::from_millis(0), Speed(0)));
        let about = ServerView {
            version: String::new(),
            mode: "serve".to_owned(),
            metadata: Vec::new(),
            prefix: false,
            default_machine: None,
            arm: None,
            driver: DriverKind::Simulated,
        };
        let telemetry = Telemetry::new();
        let webhooks = WebhooksShared::new(control.clone(), &WebhookSettings::default(), &telemetry);
        let shared = api(control.clone(), about, telemetry, webhooks, None);
        let router = router(shared, Access::Tokens, Scheme::Http, HostNames::default());
        let hosts = (1..=6).map(|n| json!({ "command": "admit_host", "name": format!("h{n}") }));
        let set = |name| json!({ "command": "admit_scale_set", "name": name });
        let instance = |set, host| json!({ "command": "admit_instance", "scale_set": set, "instance": { "host": host } });
        let rest = [
            set("web"),
            instance("web", "h1"),
            instance("web", "h1"),
            set("db"),
            instance("db", "h2"),
            json!({ "command": "admit_availability_set", "name": "sql" }),
        ];
        let commands: Value = hosts.chain(rest).collect();
        let commands: Vec<NamedCommand> = serde_json::from_value(commands).unwrap();
        control.run_commands(commands).await.unwrap();
        Self { control, router }
    }

    /// A token with a role, for the given tenants or all.
    async fn token(&self, role: Role, tenants: &[&str]) -> String {
        let number = self.control.shared().next_token();
        let text = Secret::new().unwrap().text(number);
        let mut scope = Scope::default();
        if !tenants.is_empty() {
            scope.tenants = tenants.iter().map(|name| Name::new(name).unwrap()).collect();
        }
        let name = Name::new(&format!("t{number}")).unwrap();
        let issue =
            Administration::IssueToken { number, name, role, scope, hash: hash(&text), expires: None };
        self.control.administer(issue, RequestContext::default()).await.unwrap();
        text
    }

    async fn send(&self, token: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("Host", "localhost");
        let request = request.header("Authorization", format!("Bearer {token}"));
        let request = request.header("Content-Type", "application/json").body(Body::from(body.to_string()));
        let response = self.router.clone().oneshot(request.unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status.as_u16(), serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, token: &str, path: &str) -> (u16, Value) {
        self.send(token, Method::GET, path, Value::Null).await
    }

    async fn scale(&self, token: &str, set: &str, capacity: u16) -> u16 {
        let path = format!("/v1/scalesets/{set}/scale");
        self.send(token, Method::POST, &path, json!({ "capacity": capacity })).await.0
    }
}

/// promise: S2
#[tokio::test]
async fn a_token_for_a_scale_set_scales_no_other() {
    let server = ScaleSetTestServer::new().await;
    let web = server.token(Role::Operator, &["web"]).await;
    let (status, listed) = server.get(&web, "/v1/scalesets").await;
    assert_eq!((status, listed["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(listed["items"][0]["name"], "web");
    assert_eq!(server.get(&web, "/v1/availabilitysets").await.1["items"], json!([]));
    assert_eq!(server.scale(&web, "web", 4).await, 200);
    assert_eq!(server.scale(&web, "web", 1).await, 200);
    let shown = server.get(&web, "/v1/scalesets/web").await.1;
    assert_eq!(shown["capacity"], 1, "{shown}");
    let foreign = server.get(&web, "/v1/scalesets/db").await;
    assert_eq!(foreign.0, 403);
    for path in ["/v1/scalesets/unknown", "/v1/availabilitysets/sql", "/v1/availabilitysets/unknown"] {
        assert_eq!(
            server.get(&web, path).await,
            foreign,
            "a foreign resource looks like a missing one: {path}"
        );
    }
    assert_eq!((server.scale(&web, "db", 1).await, server.scale(&web, "unknown", 1).await), (403, 403));
    let delete = |which: Value| json!({ "instances": which });
    let path = "/v1/scalesets/web/delete-instances";
    assert_eq!(server.send(&web, Method::POST, path, delete(json!(["0"]))).await.0, 200);
    assert_eq!(
        server.send(&web, Method::POST, "/v1/scalesets/web/upgrade", json!({ "instances": "all" })).await.0,
        200
    );
    let hosts = json!({ "capacity": 9, "hosts": ["h99"] });
    assert_eq!(server.send(&web, Method::POST, "/v1/scalesets/web/scale", hosts).await.0, 403);
    let db = json!({ "command": "admit_instance", "scale_set": "db", "instance": { "host": "h1" } });
    assert_eq!(server.send(&web, Method::POST, "/v1/commands", db).await.0, 403);
}

/// promise: S2
#[tokio::test]
async fn models_of_scale_sets_need_an_admin() {
    let server = ScaleSetTestServer::new().await;
    let [viewer, operator, admin] = [
        server.token(Role::Viewer, &[]).await,
        server.token(Role::Operator, &[]).await,
        server.token(Role::Admin, &[]).await,
    ];
    let all = [
        (Method::GET, "/v1/scalesets", Value::Null, [200, 200, 200]),
        (Method::GET, "/v1/scalesets/web", Value::Null, [200, 200, 200]),
        (Method::GET, "/v1/availabilitysets/sql", Value::Null, [200, 200, 200]),
        (Method::POST, "/v1/scalesets/web/scale", json!({ "capacity": 3 }), [403, 200, 200]),
        (Method::POST, "/v1/scalesets/web/upgrade", json!({ "instances": "all" }), [403, 200, 200]),
        (Method::POST, "/v1/scalesets/web/delete-instances", json!({ "instances": [] }), [403, 400, 400]),
        (Method::PATCH, "/v1/scalesets/web", json!({ "os_image": true }), [403, 403, 200]),
        (Method::POST, "/v1/scalesets", json!({ "name": "new", "instances": 2 }), [403, 403, 200]),
    ];
    for (method, path, body, expected) in all {
        for (token, expected) in [&viewer, &operator, &admin].into_iter().zip(expected) {
            let (status, answer) = server.send(token, method.clone(), path, body.clone()).await;
            assert_eq!(status, expected, "{method} {path}: {answer}");
        }
    }
}

/// promise: C1
#[tokio::test]
async fn concurrent_changes_of_a_scale_set_are_each_applied_whole() {
    let server = std::sync::Arc::new(ScaleSetTestServer::new().await);
    let token = server.token(Role::Operator, &[]).await;
    let requests: Vec<_> = (0..16u16)
        .map(|change| {
            let (server, token) = (Arc::clone(&server), token.clone());
            tokio::spawn(async move { server.scale(&token, "web", 3 + change % 5).await })
        })
        .collect();
    for change in requests {
        let status = change.await.unwrap();
        assert!(
            [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].map(|code| code.as_u16()).contains(&status)
        );
    }
    let capacity = server.get(&token, "/v1/scalesets/web").await.1["capacity"].as_u64().unwrap();
    assert!((3..8).contains(&capacity), "it is what one of them wanted, not a sum: {capacity}");
}

/// promise: C5
#[tokio::test]
async fn a_change_of_a_scale_set_has_one_audit_entry() {
    let server = ScaleSetTestServer::new().await;
    let token = server.token(Role::Operator, &["web"]).await;
    let mut entries = server.control.entries();
    assert_eq!(server.scale(&token, "web", 5).await, 200);
    let received: Vec<_> =
        std::iter::from_fn(|| entries.try_recv().ok()).map(|logged| logged.entry).collect();
    let commands: Vec<_> = received.iter().filter(|entry| entry.kind == "command").collect();
    let [command] = commands.as_slice() else { panic!("{received:?}") };
    let change = json!({ "command": "scale", "scale_set": "web", "capacity": 5 });
    let stored = command.command.as_ref().map(CommandJson::to_value);
    assert_eq!((stored, command.by.as_str()), (Some(change), "token t0"));
    assert_eq!(command.tenants, ["web"]);
    assert!(
        received.len() > 1 && received[1..].iter().all(|entry| entry.because == Some(command.number)),
        "{received:?}"
    );
}
