//! Requests through servers that do not own the cluster: whoever reads there after a reply finds what was done.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use forewarn_control::request::{Administration, ClusterRequest, RequestContext, Transaction};
use forewarn_control::shared::{Filter, Progress, WebhookFormat};
use forewarn_control::{ClusterId, ControlError, NamedCommand};
use forewarn_lifecycle::{Command, Name, TenantId};
use forewarn_realm::SimulatedEngine;
use serde_json::json;

use super::move_tests::{agreed_owner, stop_all, three_servers};
use super::tests::{TestServer, host, names, until};
use crate::control_handle::ControlHandle;

/// Writes through each server: a copy that lags would be seen at one of them.
const WRITES: usize = 10;

/// Three servers: the owner of the default cluster first.
async fn owner_first(engine: &SimulatedEngine) -> Vec<TestServer> {
    let mut servers = three_servers(engine).await;
    servers[0].control.submit(host("h1")).await.unwrap();
    let owner = agreed_owner(&servers, |_| true).await;
    servers.sort_by_key(|server| server.control.realm_name() != Some(&owner));
    for server in &servers {
        server.control.confirm_reads().await.unwrap();
    }
    servers
}

fn command(json: serde_json::Value) -> NamedCommand {
    serde_json::from_value(json).unwrap()
}

async fn run(control: &ControlHandle, json: serde_json::Value) -> Result<(), ControlError> {
    control.run_commands(vec![command(json)]).await.map(drop)
}

fn new_host(name: &str) -> serde_json::Value {
    json!({ "command": "admit_host", "name": name })
}

fn is_announced(control: &ControlHandle, tenant: usize) -> bool {
    let tenant = TenantId(tenant.try_into().unwrap());
    control.look(|state| state.cluster.tenant(tenant).is_some_and(|one| !one.events().is_empty())).unwrap()
}

/// promise: C1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_through_another_server_comes_once_that_server_shows_the_change() {
    let engine = SimulatedEngine::new();
    let servers = owner_first(&engine).await;
    for write in 0..WRITES {
        for (number, server) in servers.iter().enumerate() {
            let name = format!("w{write}-{number}");
            run(&server.control, new_host(&name)).await.unwrap();
            assert!(names(&server.control).contains(&name), "{name}");
        }
    }
    stop_all(servers).await;
}

/// promise: C1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_through_another_server_is_shown_there_with_the_reply() {
    let engine = SimulatedEngine::new();
    let servers = owner_first(&engine).await;
    for number in 0..2 * WRITES {
        let through = &servers[number % servers.len()].control;
        let machine = format!("m{number}");
        run(through, json!({ "command": "admit_vm", "name": machine, "host": "h1" })).await.unwrap();
        through.submit(Command::Enrol(TenantId(number.try_into().unwrap()))).await.unwrap();
        run(through, json!({ "command": "restart", "machine": machine })).await.unwrap();
        assert!(is_announced(through, number), "{machine}");
        for server in &servers {
            until("every server shows it", || is_announced(&server.control, number)).await;
        }
    }
    stop_all(servers).await;
}

/// promise: C1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_copies_nothing_answers_vms_and_no_operators() {
    let engine = SimulatedEngine::new();
    let servers = owner_first(&engine).await;
    let (owner, other) = (&servers[0].control, &servers[1].control);
    servers[1].engine.cut();
    let unknown = run(other, new_host("unknown")).await;
    assert_eq!(unknown, Err(ControlError::Unavailable), "it cannot show it");
    assert!(names(owner).contains(&"unknown".to_owned()));
    other.submit(host("of-a-vm")).await.unwrap();
    assert!(names(owner).contains(&"of-a-vm".to_owned()));
    // It does not plan again before it has copied what the owner has.
    let plans = AtomicUsize::new(0);
    let plan = |_: &crate::snapshot::State<'_>| {
        plans.fetch_add(1, Ordering::Relaxed);
        let commands = vec![command(new_host("planned"))];
        Ok::<_, Infallible>((Transaction { commands, ..Transaction::default() }, ()))
    };
    let outdated = other.transact(RequestContext::default(), plan).await.map(drop);
    assert_eq!((outdated, plans.load(Ordering::Relaxed)), (Err(ControlError::Unavailable), 1));
    servers[1].engine.heal();
    until("it copies again", || names(other).contains(&"of-a-vm".to_owned())).await;
    other.transact(RequestContext::default(), plan).await.unwrap().unwrap();
    assert!(names(other).contains(&"planned".to_owned()));
    stop_all(servers).await;
}

/// promise: W2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_another_server_removes_keeps_the_progress_of_its_webhooks() {
    let engine = SimulatedEngine::new();
    let servers = owner_first(&engine).await;
    let (name, url) = (Name::new("ops").unwrap(), forewarn_url::Url::parse("http://127.0.0.1:9/").unwrap());
    let (format, filter) = (WebhookFormat::CloudEvents, Filter::default());
    let add = Administration::AddWebhook { name, url, format, filter, authorization: None };
    servers[0].control.administer(add, RequestContext::default()).await.unwrap();
    let (id, name) = (ClusterId(1), Name::new("c1").unwrap());
    let create = Administration::CreateCluster(name.clone());
    servers[0].control.administer(create, RequestContext::default()).await.unwrap();
    let owner = |server: &TestServer| server.control.cluster_owner(id);
    until("it has an owner", || {
        owner(&servers[0]).is_some() && servers.iter().all(|one| owner(one) == owner(&servers[0]))
    })
    .await;
    let (owners, others): (Vec<_>, Vec<_>) =
        servers.iter().partition(|server| server.control.realm_name().cloned() == owner(server));
    let (control, other) = (owners[0].control.of(id), others[0].control.clone());
    until("the other server has the cluster", || other.shared().cluster_name(id).is_some()).await;
    // It copies nothing while the progress is made and the cluster is closed.
    others[0].engine.cut();
    let progress = Progress { cursor: 1, lost: 7, failing: None };
    let advance = ClusterRequest::AdvanceWebhooks(vec![(0, progress)]);
    control.request(control.to_cluster(advance)).await.unwrap();
    let removing = other.clone();
    let removed = tokio::spawn(async move {
        let remove = || Administration::RemoveCluster(name.clone());
        let mut removed = Err(ControlError::Unavailable);
        while removed == Err(ControlError::Unavailable) {
            removed = removing.administer(remove(), RequestContext::default()).await.map(drop);
        }
    });
    until("it is closed", || control.look(|state| state.durable.closed().is_some()).unwrap_or(true)).await;
    others[0].engine.heal();
    removed.await.unwrap();
    let kept = other.shared().undelivered_of(id).and_then(|messages| messages.progress_of(0));
    assert_eq!(kept.map(|kept| kept.lost), Some(7));
    stop_all(servers).await;
}
