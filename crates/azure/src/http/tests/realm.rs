//! Requests through every server of a realm: a response shows what the request has done, whichever server owns the cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::http::StatusCode;
use forewarn_control::{ClusterId, Fleet, Permit};
use forewarn_lifecycle::Name;
use forewarn_realm::SimulatedEngine;
use forewarn_server::{
    ControlHandle, Engine, Hypervisor, Keyspace, LogLimits, RealmPlan, admit_fleet_if_empty,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Client, FLEET, own};

const SERVERS: [&str; 3] = ["one", "two", "three"];

/// Requests through each server: a copy that lags would be seen at one of them.
const ROUNDS: usize = 5;

/// Servers of a realm in one process, on a simulated engine.
pub(in crate::http) struct TestRealm {
    pub(in crate::http) clients: Vec<Client>,
    /// The way of each server to the engine.
    engines: BTreeMap<&'static str, SimulatedEngine>,
    _directories: Vec<TempDir>,
}

impl TestRealm {
    /// The owner of the default cluster first. All servers know the fleet.
    pub(in crate::http) async fn start() -> Self {
        let engine = SimulatedEngine::new();
        let (mut clients, mut directories) = (Vec::new(), Vec::new());
        let engines: BTreeMap<_, _> = SERVERS.into_iter().map(|name| (name, engine.client())).collect();
        for (name, engine) in &engines {
            let directory = tempfile::tempdir().unwrap();
            let control = join(engine, &directory, name).await;
            clients.push(Client::of(control, Permit::unlimited("anyone")));
            directories.push(directory);
        }
        let owner = |client: &Client| client.control.cluster_owner(ClusterId::DEFAULT);
        until("the cluster has an owner", || {
            owner(&clients[0]).is_some() && clients.iter().all(|one| owner(one) == owner(&clients[0]))
        })
        .await;
        admit_fleet_if_empty(&clients[0].control, &Fleet::parse(FLEET).unwrap()).await.unwrap();
        for client in &clients {
            client.control.confirm_reads().await.unwrap();
        }
        let first = owner(&clients[0]);
        clients.sort_by_key(|client| client.control.realm_name() != first.as_ref());
        Self { clients, engines, _directories: directories }
    }

    /// The way of a server to the engine.
    pub(in crate::http) fn engine_of(&self, client: &Client) -> &SimulatedEngine {
        &self.engines[client.control.realm_name().unwrap().as_str()]
    }

    pub(in crate::http) async fn stop(self) {
        for client in self.clients {
            client.control.stop().await;
        }
    }
}

async fn join(engine: &SimulatedEngine, directory: &TempDir, name: &str) -> ControlHandle {
    let plan = RealmPlan {
        name: Name::new(name).unwrap(),
        engine: Engine::Simulated(engine.clone()),
        keys: Keyspace::new("/forewarn/1/").unwrap(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: None,
        clock_speed: None,
        zone: None,
        log_limits: LogLimits::default(),
        compacts: true,
    };
    let keep = Duration::from_hours(24);
    let joined = ControlHandle::join_realm(directory.path(), plan, Hypervisor::simulated(), keep).await;
    let (control, _) = joined.unwrap();
    control.documents_are_readable().await;
    control
}

pub(in crate::http) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..400 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not reached: {what}");
}

fn machine(size: &str) -> Value {
    json!({ "location": "eastus", "properties": { "hardwareProfile": { "vmSize": size } } })
}

/// promise: C1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_has_the_body_that_was_written_through_any_server() {
    let realm = TestRealm::start().await;
    for round in 0..ROUNDS {
        for (number, client) in realm.clients.iter().enumerate() {
            let name = format!("vm{round}-{number}");
            let path = own(&format!("virtualMachines/{name}"));
            let made = client.send("PUT", &path, machine("Standard_D2s_v3")).await;
            assert_eq!(
                (made.status, &made.body["name"]),
                (StatusCode::CREATED, &json!(name)),
                "{}",
                made.body
            );
            let changed = client.send("PUT", &path, machine("Standard_D4s_v3")).await;
            let size = &changed.body["properties"]["hardwareProfile"]["vmSize"];
            assert_eq!(
                (changed.status, size),
                (StatusCode::OK, &json!("Standard_D4s_v3")),
                "{}",
                changed.body
            );
            let instance = own("virtualMachineScaleSets/web/virtualMachines/0");
            let tagged = client.send("PUT", &instance, json!({ "tags": { "by": name } })).await;
            assert_eq!(
                (tagged.status, &tagged.body["tags"]["by"]),
                (StatusCode::OK, &json!(name)),
                "{}",
                tagged.body
            );
        }
    }
    realm.stop().await;
}
