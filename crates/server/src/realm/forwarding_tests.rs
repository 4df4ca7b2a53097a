//! Requests that are forwarded to an owner that hangs, has lost the cluster, or is behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, Request, RequestContext, Transaction,
};
use forewarn_control::shared::{Role, Scope, TokenHash};
use forewarn_control::{ClusterId, ControlError, NamedCommand, Stream};
use forewarn_lifecycle::Name;
use forewarn_peers::{ForwardOutcome, PeerClient, PeerError, SeenNumbers};
use forewarn_realm::{SimulatedEngine, SimulatedFault, WatchFault};
use tokio::time::timeout;

use super::tests::{TestServer, host, hosts, names, server, until};
use crate::control_handle::ControlHandle;
use crate::snapshot::State;

const CLUSTER: ClusterId = ClusterId::DEFAULT;

/// Time in which an answer would have come.
const SOON: Duration = Duration::from_millis(200);

/// More than the number of calls of a server during a test.
const CALLS_MAX: usize = 10_000;

/// Servers of a realm with one host, and the owner of the default cluster apart.
async fn servers<const N: usize>(engine: &SimulatedEngine, all: [&str; N]) -> (TestServer, Vec<TestServer>) {
    let mut servers = Vec::new();
    for name in all {
        servers.push(server(engine, name).await);
    }
    servers[0].control.submit(host("h1")).await.unwrap();
    until("every server has the host", || servers.iter().all(|server| hosts(&server.control) == 1)).await;
    let owner = servers[0].control.cluster_owner(CLUSTER).unwrap();
    let owns = |server: &TestServer| server.control.realm_name() == Some(&owner);
    let owner = servers.iter().position(owns).unwrap();
    (servers.remove(owner), servers)
}

fn command(json: serde_json::Value) -> NamedCommand {
    serde_json::from_value(json).unwrap()
}

fn admission(name: &str) -> NamedCommand {
    command(serde_json::json!({ "command": "admit_host", "name": name }))
}

fn receipts(control: &ControlHandle) -> usize {
    control.snapshot().state.cluster(CLUSTER).unwrap().receipts().size().0
}

fn operations(control: &ControlHandle, name: &str) -> bool {
    control.snapshot().state.operation(name).is_some()
}

/// promise: D1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_an_owner_that_hangs_after_its_commit_is_answered_by_the_next_owner() {
    let engine = SimulatedEngine::new();
    let (lost, others) = servers(&engine, ["one", "two", "three"]).await;
    // The owner commits, and never learns of it.
    (0..CALLS_MAX).for_each(|_| lost.engine.meet(SimulatedFault::LostAnswer));
    let (plans, control) = (Arc::<AtomicUsize>::default(), others[0].control.clone());
    let planned = Arc::clone(&plans);
    let asking = tokio::spawn(async move {
        let plan = |_: &State<'_>| {
            planned.fetch_add(1, Ordering::Relaxed);
            let (commands, operation) = (vec![admission("h2")], Some("/g/h2".to_owned()));
            Ok::<_, ControlError>((Transaction { commands, operation, ..Transaction::default() }, ()))
        };
        control.transact(RequestContext::default(), plan).await
    });
    until("the transaction is in the log", || others.iter().all(|server| hosts(&server.control) == 2)).await;
    assert!(!asking.is_finished());
    lost.engine.cut();
    // The owner is still cut off when the answer comes.
    let (transacted, ()) = asking.await.unwrap().unwrap().unwrap();
    assert_eq!(plans.load(Ordering::Relaxed), 1, "it was carried out, and is not planned again");
    let operation = transacted.operation.expect("the operation of the first attempt").name;
    assert_ne!(others[0].control.cluster_owner(CLUSTER).as_ref(), lost.control.realm_name());
    lost.engine.heal();
    until("the former owner follows", || operations(&lost.control, &operation)).await;
    for server in others.iter().chain([&lost]) {
        assert_eq!((names(&server.control), receipts(&server.control)), (vec!["h1".into(), "h2".into()], 1));
        server.control.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_request_that_is_forwarded_has_a_receipt_without_a_key() {
    let engine = SimulatedEngine::new();
    let (owner, others) = servers(&engine, ["one", "two"]).await;
    owner.control.run_commands(vec![admission("h2")]).await.unwrap();
    assert_eq!(receipts(&owner.control), 0);
    others[0].control.run_commands(vec![admission("h3")]).await.unwrap();
    assert_eq!(receipts(&owner.control), 1);
    for server in others.iter().chain([&owner]) {
        server.control.stop().await;
    }
}

/// A client of a server for the owner, and the term.
fn client_for(server: &TestServer, owner: &TestServer) -> (Arc<PeerClient>, u64) {
    let realm = server.control.realm().unwrap();
    let term = realm.owners.borrow()[&CLUSTER].term;
    (Arc::clone(&realm.clients.load()[owner.control.realm_name().unwrap()]), term)
}

fn number(control: &ControlHandle) -> u64 {
    control.snapshot().state.cluster(CLUSTER).unwrap().log_number()
}

fn refused() -> Arc<Request> {
    let restart = command(serde_json::json!({ "command": "restart", "machine": "nobody" }));
    Arc::new(Request::Cluster(CLUSTER, ClusterRequest::Commands(CommandBatch::from(vec![restart]))))
}

/// promise: D1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_refuses_nothing_on_a_state_that_its_caller_has_left_behind() {
    let engine = SimulatedEngine::new();
    let (owner, others) = servers(&engine, ["one", "two"]).await;
    let (client, term) = client_for(&others[0], &owner);
    let seen = |number| SeenNumbers::from([(Stream::Cluster(CLUSTER), number)]);
    let has = number(&owner.control);
    let answered = client.forward(term, seen(has), &refused()).await;
    assert!(matches!(answered, ForwardOutcome::Answered(_)), "{answered:?}");
    let request = refused();
    let mut asking = Box::pin(client.forward(term, seen(has + 1), &request));
    assert!(timeout(SOON, &mut asking).await.is_err(), "its caller has seen more");
    // An owner that has lost the cluster gets this batch from the log.
    owner.control.submit(host("h2")).await.unwrap();
    let answered = asking.await;
    // On a slow machine the owner may have given up.
    let is_behind = |outcome: &ForwardOutcome| {
        matches!(outcome, ForwardOutcome::NotSent(PeerError::Rejected { status: 503, .. }))
    };
    assert!(matches!(answered, ForwardOutcome::Answered(_)) || is_behind(&answered), "{answered:?}");
    let never = client.forward(term, seen(has + 1_000), &refused()).await;
    assert!(is_behind(&never), "{never:?}");
    for server in others.iter().chain([&owner]) {
        server.control.stop().await;
    }
}

async fn issue_token(control: &ControlHandle, name: &str) -> u32 {
    let number = control.shared().next_token();
    let (name, role, scope) = (Name::new(name).unwrap(), Role::Admin, Scope::default());
    let hash = TokenHash([u8::try_from(number).unwrap(); 32]);
    let issue = Administration::IssueToken { number, name, role, scope, hash, expires: None };
    control.administer(issue, RequestContext::default()).await.unwrap();
    number
}

/// promise: D1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_was_issued_a_moment_ago_is_known_to_the_owner() {
    let engine = SimulatedEngine::new();
    let (owner, others) = servers(&engine, ["one", "two"]).await;
    // The owner does not hear of the token, until the next batch shows that it has missed one.
    (0..CALLS_MAX).for_each(|_| owner.engine.meet_in_watch(WatchFault::Dropped));
    let control = others[0].control.clone();
    let token = Some(issue_token(&control, "a").await);
    let mut asking = tokio::spawn(async move {
        loop {
            let context = RequestContext { by: "token a".to_owned(), token, ..RequestContext::default() };
            let commands = vec![admission("h2")];
            match control.run_commands(CommandBatch { commands, context }).await {
                // On a slow machine the owner may be too late.
                Err(ControlError::Unavailable) => {}
                result => return result,
            }
        }
    });
    assert!(timeout(SOON, &mut asking).await.is_err(), "the owner does not have the token yet");
    owner.engine.heal();
    issue_token(&others[0].control, "b").await;
    asking.await.unwrap().unwrap();
    for server in others.iter().chain([&owner]) {
        server.control.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_server_removes_a_cluster() {
    let engine = SimulatedEngine::new();
    let (one, others) = servers(&engine, ["one", "two"]).await;
    let both = [&one, &others[0]];
    let name = |number: usize| Name::new(&format!("c{number}")).unwrap();
    for (number, server) in both.iter().enumerate() {
        let create = Administration::CreateCluster(name(number));
        server.control.administer(create, RequestContext::default()).await.unwrap();
    }
    let owners = |server: &TestServer| {
        let named = |number| server.control.shared().cluster_named(name(number).as_str());
        let owners = [named(0), named(1)].map(|id| id.and_then(|id| server.control.cluster_owner(id)));
        owners.into_iter().flatten().count()
    };
    until("every cluster has an owner", || both.iter().all(|server| owners(server) == 2)).await;
    let id = one.control.shared().cluster_named("c0").unwrap();
    let owner = one.control.cluster_owner(id);
    let (first, second) = (&both[usize::from(owner.as_ref() == one.control.realm_name())], &both[0]);
    for (number, server) in [(0, first), (1, second)] {
        let remove = Administration::RemoveCluster(name(number));
        server.control.administer(remove, RequestContext::default()).await.unwrap();
    }
    for server in both {
        server.control.confirm_reads().await.unwrap();
        assert_eq!(server.control.shared().clusters().count(), 1);
        server.control.stop().await;
    }
}
