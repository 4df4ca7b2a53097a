//! Visibility of the audit log and of explanations: a server with tokens, over its own listener.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::shared::{Reach, Role, Scope};
use forewarn_control::{AuditEntry, AuditVerifier, Chain, ClusterId, Fleet, NewAuditEntry, Permit, Stream};
use forewarn_lifecycle::{Command, Name, Seed, Size};
use forewarn_store::{AuditBatch, LoggedEntry};
use forewarn_url::OwnHosts;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::audit::check_exportable;
use super::{Secret, hash};
use crate::RealmPlan;
use crate::api_listener::ApiListener;
use crate::clock::{ClockPlan, Speed};
use crate::hypervisor::Hypervisor;
use crate::service::{Plan, Service};
use forewarn_control::request::{Administration, CommandBatch, RequestContext};

const FLEET: &str = "
host = [{ name = 'h1' }]
vm = [{ name = 'east', host = 'h1' }, { name = 'west', host = 'h1' }]
";

pub(super) struct AuditTestServer {
    pub(super) service: Service,
    /// Contains the file of the first token, and the data of a server in a realm.
    _directory: tempfile::TempDir,
}

impl AuditTestServer {
    /// Two tenants that share a host, each with events of its update.
    async fn start() -> Self {
        let server = Self::with_fleet(None).await;
        server.announce().await;
        server
    }

    /// Two tenants that share a host, on a server of its own or in a realm.
    pub(super) async fn with_fleet(realm: Option<RealmPlan>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plan = Plan {
            mode: "serve",
            data_dir: realm.as_ref().map(|_| directory.path().join("data")),
            seed: Seed([7; 16]),
            clock: ClockPlan::Virtual { start: None, speed: Speed(0) },
            hypervisor: Hypervisor::simulated(),
            fleet: Fleet::parse(FLEET).unwrap(),
            settings: forewarn_metadata::Settings::default(),
            metadata_listeners: Vec::new(),
            threads: NonZeroUsize::MIN,
            api: vec![ApiListener::Tokens("127.0.0.1:0".parse().unwrap())],
            api_hosts: OwnHosts::default(),
            first_token_file: Some(directory.path().join("first.token")),
            api_limits: crate::ClientLimits::default(),
            extension_limits: crate::ClientLimits::default(),
            descriptors: crate::Descriptors::default(),
            extensions: Vec::new(),
            audit_keep: Duration::from_hours(24),
            webhooks: crate::WebhookSettings::default(),
            realm,
        };
        Self { service: Service::start(plan).await.unwrap(), _directory: directory }
    }

    /// Announces a restart of one tenant, and an update of both.
    pub(super) async fn announce(&self) {
        let control = self.service.control();
        let tenants = control.look(|state| state.cluster.tenants().map(|(id, _)| id).collect::<Vec<_>>());
        for tenant in tenants.unwrap() {
            control.submit(Command::Enrol(tenant)).await.unwrap();
        }
        for json in
            [r#"{"command":"restart","machine":"west"}"#, r#"{"command":"update_hosts","hosts":["h1"]}"#]
        {
            let terms = RequestContext { by: "token alice".to_owned(), ..RequestContext::default() };
            let commands = vec![serde_json::from_str(json).unwrap()];
            control.run_commands(CommandBatch { commands, context: terms }).await.unwrap();
        }
    }

    /// A token for the given tenants, or for all if none is given.
    pub(super) async fn token(&self, name: &str, tenants: &[&str]) -> String {
        let named = tenants.iter().map(|name| Name::new(name).unwrap());
        let tenants = if tenants.is_empty() { Reach::All } else { named.collect() };
        self.token_for(name, Scope { tenants, ..Scope::default() }).await
    }

    pub(super) async fn token_for(&self, name: &str, scope: Scope) -> String {
        let control = self.service.control();
        let number = control.shared().next_token();
        let text = Secret::new().unwrap().text(number);
        let (name, hash) = (Name::new(name).unwrap(), hash(&text));
        let issue =
            Administration::IssueToken { number, name, role: Role::Viewer, scope, hash, expires: None };
        control.administer(issue, RequestContext::default()).await.unwrap();
        text
    }

    /// Status and body of a response.
    pub(super) async fn get(&self, token: &str, path: &str) -> (u16, String) {
        let (status, _, body) = self.exchange(token, path).await;
        (status, body)
    }

    /// Status, head and body of a response.
    pub(super) async fn exchange(&self, token: &str, path: &str) -> (u16, String, String) {
        let address = self.service.api_url().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    pub(super) async fn json(&self, token: &str, path: &str) -> Value {
        let (status, body) = self.get(token, path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// The chains of an export.
pub(super) fn verified(export: &str) -> AuditVerifier {
    let mut verifier = AuditVerifier::new();
    for line in export.lines() {
        let entry: AuditEntry = serde_json::from_str(line).unwrap();
        assert_eq!(entry.to_line(), line);
        verifier.verify(&entry).unwrap();
    }
    verifier
}

/// promise: S3
#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_tenants_reads_entries_of_no_others() {
    let server = AuditTestServer::start().await;
    let (west, all) = (server.token("w", &["west"]).await, server.token("a", &[]).await);
    let page = server.json(&west, "/v1/audit?limit=1000").await;
    let kinds: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    // The update and the initial fleet name both tenants.
    assert_eq!(kinds, ["announced", "command", "enrolled", "admitted", "admitted"]);
    assert!(!page.to_string().contains("east"), "{page}");
    let whole = server.json(&all, "/v1/audit?limit=1000").await;
    assert!(whole["items"].as_array().unwrap().len() > kinds.len());

    let (status, _) = server.get(&west, "/v1/audit?tenant=east").await;
    assert_eq!(status, 200, "the response does not reveal whether the name exists");
    assert_eq!(server.json(&west, "/v1/audit?tenant=east").await["items"].as_array().unwrap().len(), 0);
    let (status, body) = server.get(&west, "/v1/audit/export").await;
    assert_eq!(status, 403, "{body}");
    let (status, body) = server.get(&all, "/v1/audit/export").await;
    assert_eq!(status, 200);
    let exported = verified(&body);
    assert_eq!(exported.entries().to_string(), whole["head"].as_str().unwrap());
    let default = Some(Stream::Cluster(ClusterId::DEFAULT));
    assert!(exported.chain(default).is_some() && exported.chain(Some(Stream::Shared)).is_some());
    // The export of a cluster verifies on its own.
    let (status, body) = server.get(&all, "/v1/audit/export?cluster=default").await;
    let of_cluster = verified(&body);
    assert_eq!((status, of_cluster.chain(default)), (200, exported.chain(default)));
    assert_eq!(of_cluster.chains().count(), 1);
    assert_eq!(server.get(&all, "/v1/audit/export?cluster=none").await.0, 404);
    server.service.stop().await;
}

/// promise: S3
#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_a_cluster_exports_entries_of_no_other() {
    let server = AuditTestServer::start().await;
    let control = server.service.control();
    let create = Administration::CreateCluster(Name::new("west").unwrap());
    control.administer(create, RequestContext::default()).await.unwrap();
    let west = ClusterId(1);
    let host = Command::AdmitHost { name: Name::new("w1").unwrap(), zone: None, capacity: Size::NONE };
    control.of(west).submit(host).await.unwrap();
    let scope = Scope { clusters: [west].into_iter().collect(), ..Scope::default() };
    let token = server.token_for("w", scope).await;
    let (status, body) = server.get(&token, "/v1/audit/export?cluster=west").await;
    assert_eq!(status, 200, "{body}");
    let exported = verified(&body);
    assert!(exported.chains().all(|(stream, _)| stream == Some(Stream::Cluster(west))), "{body}");
    assert!(exported.entries() > 0);
    let (status, body) = server.get(&token, "/v1/audit/export").await;
    assert!(status == 403 && body.contains("hint: name the cluster to export"), "{body}");
    assert_eq!(server.get(&token, "/v1/audit/export?cluster=default").await.0, 404);
    server.service.stop().await;
}

/// promise: S3
#[test]
fn a_token_for_a_cluster_does_not_export_the_common_log() {
    let west = ClusterId(1);
    let mut limited = Permit::unlimited("token w");
    let check = |permit: &Permit, stream| {
        let entry = Chain::default().seal(NewAuditEntry { stream, ..NewAuditEntry::default() });
        let entries = vec![LoggedEntry { position: 1, entry: Arc::new(entry) }];
        let first = AuditBatch { entries, next: None, head: 1, end: 1, swept: 0 };
        check_exportable(permit, Some(Stream::Cluster(west)), &first)
    };
    assert_eq!(check(&limited, None), Ok(()));
    limited.scope.clusters = [west].into_iter().collect();
    assert_eq!(check(&limited, Some(Stream::Cluster(west))), Ok(()));
    let refused = check(&limited, None).unwrap_err().text();
    assert!(refused.contains("/problems/denied") && refused.contains("the common log of older versions"));
}

/// promise: S3
#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_names_no_other_tenants() {
    let server = AuditTestServer::start().await;
    let (west, all) = (server.token("w", &["west"]).await, server.token("a", &[]).await);
    let events = server.json(&all, "/v1/events").await;
    let of = |tenant: &str| {
        let all = events["items"].as_array().unwrap().iter();
        let freeze = |event: &&Value| event["tenant"] == tenant && event["kind"] == "Freeze";
        all.clone().find(freeze).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (own, foreign) = (of("west"), of("east"));
    let explanation = server.json(&west, &format!("/v1/events/{own}/explanation")).await;
    assert!(!explanation.to_string().contains("east"), "{explanation}");
    assert_eq!(explanation["blockers"].as_array().unwrap().len(), 2);
    // An event of another tenant must look like a missing one.
    let other = server.get(&west, &format!("/v1/events/{foreign}/explanation")).await;
    let never = server.get(&west, "/v1/events/00000000-0000-4000-8000-000000000000/explanation").await;
    assert_eq!(other, never);
    let other = server.get(&west, "/v1/machines/east/explanation").await;
    let never = server.get(&west, "/v1/machines/unknown/explanation").await;
    assert_eq!(other, never);
    let other = server.get(&west, "/v1/scalesets/east/explanation").await;
    let own = server.get(&west, "/v1/scalesets/west/explanation").await;
    assert_eq!((other.0, &other), (403, &own), "neither is there");
    let explanation = server.json(&west, "/v1/machines/west/west/explanation").await;
    assert!(!explanation.to_string().contains("east"), "{explanation}");
    let whole = server.json(&all, "/v1/machines/east/explanation").await;
    assert_eq!(whole["history"][0]["request"]["by"], "token alice");
    for wrong in ["/v1/machines/west/explanation?limit=0", "/v1/audit?limit=1001", "/v1/audit?order=best"] {
        assert_eq!(server.get(&all, wrong).await.0, 400, "{wrong}");
    }
    server.service.stop().await;
}
