//! The audit log of a realm: every server takes the cursors of the others.

use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::shared::Scope;
use forewarn_lifecycle::{Command, Name, Size};
use forewarn_realm::{Engine, Keyspace, SimulatedEngine};
use serde_json::Value;

use super::audit_tests::{AuditTestServer, verified};
use crate::RealmPlan;
use crate::log_length::LogLimits;

const NAMES: [&str; 3] = ["s0", "s1", "s2"];

/// Servers of a realm, each with its way to the engine.
async fn start() -> Vec<(AuditTestServer, SimulatedEngine)> {
    let engine = SimulatedEngine::new();
    let mut servers = Vec::new();
    for name in NAMES {
        let client = engine.client();
        let plan = RealmPlan {
            clock_speed: None,
            name: Name::new(name).unwrap(),
            engine: Engine::Simulated(client.clone()),
            keys: Keyspace::new("/forewarn/1/").unwrap(),
            listen: "127.0.0.1:0".parse().unwrap(),
            advertise: None,
            zone: None,
            log_limits: LogLimits::default(),
            compacts: true,
        };
        servers.push((AuditTestServer::with_fleet(Some(plan)).await, client));
    }
    servers
}

async fn stop(servers: Vec<(AuditTestServer, SimulatedEngine)>) {
    for (server, _) in servers {
        server.service.stop().await;
    }
}

/// Entries of two clusters and of the shared stream, in turns.
async fn fill(servers: &[(AuditTestServer, SimulatedEngine)]) {
    let create = Administration::CreateCluster(Name::new("west").unwrap());
    servers[1].0.service.control().administer(create, RequestContext::default()).await.unwrap();
    for turn in 0..6 {
        let control = servers[turn % servers.len()].0.service.control();
        control.confirm_reads().await.unwrap();
        let name = |prefix| Name::new(&format!("{prefix}{turn}")).unwrap();
        for (cluster, prefix) in [(ClusterId::DEFAULT, "a"), (ClusterId(1), "b")] {
            let host = Command::AdmitHost { name: name(prefix), zone: None, capacity: Size::NONE };
            control.of(cluster).submit(host).await.unwrap();
        }
    }
}

/// Reads all pages, each from the next server in turn. Returns the members of that name.
async fn paged(servers: &[&AuditTestServer], token: &str, path: &str, list: &str) -> Vec<Value> {
    let cursor = if path.contains("order=oldest") { "after" } else { "before" };
    let (mut all, mut next) = (Vec::new(), String::new());
    for server in servers.iter().cycle() {
        let mut page = server.json(token, &format!("{path}{next}")).await;
        all.append(page[list].as_array_mut().unwrap());
        match page["next"].as_str() {
            Some(position) => next = format!("&{cursor}={position}"),
            None => return all,
        }
    }
    unreachable!("the servers are tried in turn without an end")
}

/// Compares the pages of one server with those of all of them in turn. Returns the number of their members.
async fn same_pages(in_turn: &[&AuditTestServer], token: &str, path: &str, list: &str) -> usize {
    loop {
        let before = paged(&in_turn[..1], token, path, list).await;
        let found = paged(in_turn, token, path, list).await;
        // The notice of events counts from a later moment: an entry says so meanwhile.
        if paged(&in_turn[..1], token, path, list).await == before {
            assert_eq!(found, before, "{path}");
            return found.len();
        }
    }
}

/// promise: C5, S3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_on_at_any_server_with_the_same_entries_for_every_token() {
    let servers = start().await;
    servers[0].0.announce().await;
    fill(&servers).await;
    let issuer = &servers[0].0;
    let west = Scope { clusters: [ClusterId(1)].into_iter().collect(), ..Scope::default() };
    let tokens = [
        (issuer.token("all", &[]).await, 20),
        (issuer.token("tenant", &["west"]).await, 3),
        (issuer.token_for("cluster", west).await, 6),
    ];
    for turn in 0..servers.len() {
        let mut in_turn: Vec<_> = servers.iter().map(|(server, _)| server).collect();
        in_turn.rotate_left(turn);
        for (token, entries_min) in &tokens {
            for path in
                ["/v1/audit?limit=1&order=oldest", "/v1/audit?limit=1", "/v1/audit?limit=2&kind=command"]
            {
                let entries = same_pages(&in_turn, token, path, "items").await;
                assert!(entries >= *entries_min || path.contains("kind"), "{path}: {entries}");
            }
        }
        for (token, _) in &tokens[..2] {
            let path = "/v1/machines/west/explanation?limit=1";
            assert!(same_pages(&in_turn, token, path, "history").await > 2);
        }
    }
    stop(servers).await;
}

/// promise: C5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_entries_are_listed_and_exported_after_the_head_of_another_server() {
    let servers = start().await;
    fill(&servers).await;
    let ((first, _), (second, _)) = (&servers[0], &servers[1]);
    let token = first.token("all", &[]).await;
    let head = first.json(&token, "/v1/audit?limit=1").await["head"].as_str().unwrap().to_owned();
    assert!(head.ends_with("@s0"), "{head}");
    let later = format!("/v1/audit?order=oldest&after={head}");
    assert_eq!(second.json(&token, &later).await["items"], Value::Array(Vec::new()));
    second.token("later", &[]).await;
    for (server, _) in &servers {
        let page = server.json(&token, &later).await;
        assert_eq!(page["items"].as_array().unwrap().len(), 1, "{page}");
        assert!(page["head"].as_str().unwrap().ends_with("@s0"), "{page}");
    }
    let (status, exported) = second.get(&token, &format!("/v1/audit/export?after={head}")).await;
    assert_eq!((status, exported.lines().count()), (200, 1), "{exported}");
    let (_, whole) = second.get(&token, "/v1/audit/export?after=0@s0").await;
    assert_eq!(verified(&whole).entries(), 1 + head.trim_end_matches("@s0").parse::<u64>().unwrap());
    stop(servers).await;
}

/// The status of a page after a cursor, once it is as wanted, with its head and body.
async fn until_status(server: &AuditTestServer, token: &str, cursor: &str, wanted: u16) -> (String, String) {
    let mut last = String::new();
    for _ in 0..400 {
        let (status, head, body) = server.exchange(token, &format!("/v1/audit?after={cursor}")).await;
        if status == wanted {
            return (head, body);
        }
        last = format!("{status}: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not {wanted} but {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_of_a_server_that_does_not_answer_gets_503_and_of_an_unknown_one_404() {
    let servers = start().await;
    let token = servers[0].0.token("all", &[]).await;
    let asked = &servers[1].0;
    for (cursor, status, text) in [
        ("1@s9", 404, "the server of the cursor is gone or unknown: s9\\n  hint: begin without a cursor"),
        ("999999@s0", 404, "the audit log has no position 999999"),
        ("1@s0&before=2@s1", 400, "the cursors are of different servers"),
        ("0@s0&before=2@s0", 200, "\"items\":[{"),
    ] {
        let (found, body) = asked.get(&token, &format!("/v1/audit?after={cursor}")).await;
        assert!(found == status && body.contains(text), "{cursor}: {found} {body}");
    }
    let revoke = Administration::RevokeToken(Name::new("gone").unwrap());
    let gone = servers[0].0.token("gone", &[]).await;
    servers[2].0.service.control().administer(revoke, RequestContext::default()).await.unwrap();
    assert_eq!(asked.get(&gone, "/v1/audit?after=1@s0").await.0, 401);
    // The server has its key, and cannot say what was committed.
    servers[0].1.cut();
    let (head, body) = until_status(asked, &token, "1@s0", 503).await;
    assert!(head.contains("\r\nretry-after: "), "{head}");
    assert!(body.contains("the server s0 does not give its audit log now: "), "{body}");
    servers[0].1.heal();
    until_status(asked, &token, "1@s0", 200).await;
    stop(servers).await;
}
