//! Forwarded requests: answered as if they were asked directly, or with a clear outcome.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::request::{
    ClusterRequest, CommandBatch, ForwardId, IdempotencyKey, Reply, Request, RequestContext,
};
use forewarn_control::shared::SharedState;
use forewarn_control::{
    ClusterId, ControlError, Environment, HypervisorKind, NamedCommand, Stream, decide_in_cluster,
};
use forewarn_lifecycle::{Approver, Command, HostId, MachineId, Now, Seed, TenantId};
use forewarn_peers::{
    ForwardOutcome, HandlerUnavailable, MovedStream, NotOwner, OwnerDecision, Peer, PeerClient, PeerError,
    PeerLimits, ReceivedRequest, RequestAnswer, SeenNumbers,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Realm, TestServer, name, patient};

/// Number of the last batch that the owner has published.
const PUBLISHED: u64 = 9;

fn command(json: serde_json::Value) -> NamedCommand {
    serde_json::from_value(json).unwrap()
}

fn commands(commands: Vec<NamedCommand>) -> Arc<Request> {
    let batch = ClusterRequest::Commands(CommandBatch::from(commands));
    Arc::new(Request::Cluster(ClusterId::DEFAULT, batch))
}

pub(crate) fn admission() -> Arc<Request> {
    let hosts =
        (0..100).map(|number| command(json!({ "command": "admit_host", "name": format!("h{number}") })));
    commands(hosts.collect())
}

/// Decides a request in an empty cluster.
fn decide(request: &Request) -> Result<Reply, ControlError> {
    let shared = Arc::new(SharedState::new(Seed([9; 16])));
    let state = Arc::new(shared.initial_cluster(ClusterId::DEFAULT).unwrap());
    let jammed = BTreeSet::new();
    let environment = Environment {
        now: Now::at_millis(1_767_225_600_000),
        audit: Default::default(),
        hypervisor: HypervisorKind::Simulated,
        revision: 0,
        jammed: &jammed,
    };
    let Request::Cluster(id, request) = request else { return Err(ControlError::NoSuchCluster) };
    decide_in_cluster(*id, &state, &shared, &environment, request).map(|decision| decision.reply)
}

fn owner(request: &ReceivedRequest) -> RequestAnswer {
    RequestAnswer::Decided(Box::new(OwnerDecision { result: decide(&request.request), published: PUBLISHED }))
}

#[tokio::test]
async fn a_forwarded_request_is_answered_as_a_direct_one() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let client = a.client(&b);
    let refused = commands(vec![command(json!({ "command": "restart", "machine": "nobody" }))]);
    for request in [admission(), refused, admission()] {
        let direct = decide(&request);
        let seen = SeenNumbers::from([(Stream::Shared, 3), (Stream::Cluster(ClusterId::DEFAULT), 5)]);
        let outcome = client.forward(7, seen.clone(), &request).await;
        let ForwardOutcome::Answered(forwarded) = outcome else { panic!("{outcome:?}") };
        assert_eq!(*forwarded, OwnerDecision { result: direct, published: PUBLISHED });
        let received = ReceivedRequest { term: 7, seen, request: (*request).clone() };
        assert_eq!(b.handler.requests.wait(1, |_| true).await, (name("a"), received));
    }
    assert!(decide(&admission()).is_ok_and(|reply| matches!(reply, Reply::Outcome(_))));
}

#[tokio::test]
async fn a_server_that_does_not_own_the_stream_says_who_does() {
    let realm = Realm::new();
    let a = realm.server("a").await;
    for not_owner in [NotOwner { owner: Some(name("c")), term: 8 }, NotOwner { owner: None, term: 0 }] {
        let answer = RequestAnswer::NotOwner(not_owner.clone());
        let b = TestServer::start(realm.identity("b"), move |_| answer.clone()).await;
        let outcome = a.client(&b).forward(7, SeenNumbers::new(), &admission()).await;
        assert_eq!(outcome, ForwardOutcome::NotOwner(not_owner));
        assert!(outcome.may_repeat(&admission()));
    }
}

#[tokio::test]
async fn a_server_that_is_not_available_has_changed_nothing() {
    let realm = Realm::new();
    let answer = |_: &ReceivedRequest| RequestAnswer::Unavailable(HandlerUnavailable("starting".to_owned()));
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), answer).await);
    let outcome = a.client(&b).forward(7, SeenNumbers::new(), &admission()).await;
    let reason = PeerError::Rejected { status: 503, reason: "starting".to_owned() };
    assert_eq!(outcome, ForwardOutcome::NotSent(reason));
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_outcome_unknown() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let client = a.client(&b);
    b.handler.holds_requests.send_replace(true);
    let (request, handler) = (admission(), Arc::clone(&b.handler));
    let breaking = async {
        handler.requests.wait(1, |_| true).await;
        b.end().await;
    };
    let (outcome, ()) = tokio::join!(client.forward(7, SeenNumbers::new(), &request), breaking);
    assert!(matches!(outcome, ForwardOutcome::Unknown(PeerError::BrokenOff(_))), "{outcome:?}");
    assert!(!outcome.may_repeat(&request), "without a key it might be carried out twice");
    let once = IdempotencyKey { key: "k".to_owned(), fingerprint: [7; 32] };
    let with_key = RequestContext { once: Some(once), ..RequestContext::default() };
    let with_id = RequestContext { forwarded: Some(ForwardId([7; 16])), ..RequestContext::default() };
    for context in [with_key, with_id] {
        let batch = ClusterRequest::Commands(CommandBatch { commands: Vec::new(), context });
        assert!(outcome.may_repeat(&Request::Cluster(ClusterId::DEFAULT, batch)));
    }
    // A machine may repeat its approval in any case.
    let (tenant, by) = (TenantId(0), Approver::Machine(MachineId(0)));
    let approve = ClusterRequest::Rules(Command::Approve { tenant, events: Vec::new(), by });
    assert!(outcome.may_repeat(&Request::Cluster(ClusterId::DEFAULT, approve)));
    let removal = ClusterRequest::Rules(Command::RemoveHost(HostId(0)));
    assert!(!outcome.may_repeat(&Request::Cluster(ClusterId::DEFAULT, removal)));
    // Nobody listens there now.
    let outcome = client.forward(7, SeenNumbers::new(), &request).await;
    assert!(matches!(outcome, ForwardOutcome::NotSent(PeerError::Unreachable(_))), "{outcome:?}");
    assert!(outcome.may_repeat(&request));
}

#[tokio::test]
async fn an_answer_that_takes_too_long_leaves_the_outcome_unknown() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let answer = std::time::Duration::from_millis(100);
    let limits = PeerLimits { answer, ..patient() };
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), limits);
    b.handler.holds_requests.send_replace(true);
    let outcome = client.forward(7, SeenNumbers::new(), &admission()).await;
    assert_eq!(outcome, ForwardOutcome::Unknown(PeerError::TimedOut(answer)));
    // A server that nobody accepts connections of has received nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = Peer { name: name("b"), address: silent.local_addr().unwrap().to_string() };
    let limits = PeerLimits { handshake: answer, ..patient() };
    let client = PeerClient::new(peer, Arc::clone(&a.identity), limits);
    let outcome = client.forward(7, SeenNumbers::new(), &admission()).await;
    assert_eq!(outcome, ForwardOutcome::NotSent(PeerError::TimedOut(answer)));
}

#[tokio::test]
async fn a_client_goes_on_after_its_server_was_restarted() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let (client, address) = (a.client(&b), b.address);
    let answered = |outcome: ForwardOutcome| matches!(outcome, ForwardOutcome::Answered(_));
    assert!(answered(client.forward(1, SeenNumbers::new(), &admission()).await));
    b.end().await;
    let limits = forewarn_peers::ListenerLimits::default();
    let b = TestServer::start_with(realm.identity("b"), owner, limits, address).await;
    // The first request may have been sent on the connection that broke.
    let outcome = client.forward(1, SeenNumbers::new(), &admission()).await;
    if let ForwardOutcome::Unknown(_) = &outcome {
        assert!(answered(client.forward(1, SeenNumbers::new(), &admission()).await));
    } else {
        assert!(answered(outcome));
    }
    b.handler.requests.wait(1, |_| true).await;
}

#[tokio::test]
async fn requests_in_flight_have_connections_of_their_own() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let limits = PeerLimits { in_flight: 2, ..patient() };
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), limits);
    b.handler.holds_requests.send_replace(true);
    let _beating = a.heartbeats([b.peer()]);
    let request = admission();
    let watching = async {
        b.handler.requests.wait(2, |_| true).await;
        // Heartbeats go on meanwhile.
        let before = a.handler.answers_of("b");
        a.handler.reports.wait(before + 2, |report| report.answer.is_ok()).await;
        assert_eq!(b.handler.requests.count(|_| true), 2, "the third request waits");
        b.handler.holds_requests.send_replace(false);
    };
    let outcomes = async {
        tokio::join!(
            client.forward(1, SeenNumbers::new(), &request),
            client.forward(1, SeenNumbers::new(), &request),
            client.forward(1, SeenNumbers::new(), &request)
        )
    };
    let ((first, second, third), ()) = tokio::join!(outcomes, watching);
    for outcome in [first, second, third] {
        assert!(matches!(outcome, ForwardOutcome::Answered(_)), "{outcome:?}");
    }
    assert_eq!(b.handler.requests.count(|_| true), 3);
}

#[tokio::test]
async fn a_request_does_not_wait_forever_for_others() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let queue = std::time::Duration::from_millis(20);
    let limits = PeerLimits { in_flight: 1, queue, ..patient() };
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), limits);
    b.handler.holds_requests.send_replace(true);
    let request = admission();
    let second = async {
        b.handler.requests.wait(1, |_| true).await;
        let outcome = client.forward(1, SeenNumbers::new(), &request).await;
        b.handler.holds_requests.send_replace(false);
        outcome
    };
    let (first, second) = tokio::join!(client.forward(1, SeenNumbers::new(), &request), second);
    assert_eq!(second, ForwardOutcome::NotSent(PeerError::Busy));
    assert!(matches!(first, ForwardOutcome::Answered(_)), "{first:?}");
}

/// An owner that hangs must not take the connections of those who have given it up.
#[tokio::test]
async fn a_request_that_is_given_up_leaves_its_connection_to_others() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), owner).await);
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), PeerLimits { in_flight: 1, ..patient() });
    b.handler.holds_requests.send_replace(true);
    let request = admission();
    tokio::select! {
        outcome = client.forward(1, SeenNumbers::new(), &request) => panic!("the owner hangs: {outcome:?}"),
        _ = b.handler.requests.wait(1, |_| true) => {}
    }
    let second = client.forward(1, SeenNumbers::new(), &request);
    let watching = async {
        b.handler.requests.wait(2, |_| true).await;
        b.handler.holds_requests.send_replace(false);
    };
    let (second, ()) = tokio::join!(second, watching);
    assert!(matches!(second, ForwardOutcome::Answered(_)), "{second:?}");
}

#[tokio::test]
async fn a_request_is_carried_out_even_if_the_caller_hangs_up() {
    let realm = Realm::new();
    let decided = Arc::new(crate::support::Notes::default());
    let notes = Arc::clone(&decided);
    let decide = move |request: &ReceivedRequest| {
        notes.add(request.term);
        owner(request)
    };
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), decide).await);
    b.handler.holds_requests.send_replace(true);
    let (client, request) = (a.client(&b), admission());
    tokio::select! {
        _ = client.forward(5, SeenNumbers::new(), &request) => panic!("the handler hangs"),
        _ = b.handler.requests.wait(1, |_| true) => {}
    }
    drop(client);
    b.handler.holds_requests.send_replace(false);
    assert_eq!(decided.wait(1, |_| true).await, 5);
}

#[tokio::test]
async fn a_moved_stream_is_announced() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, realm.server("b").await);
    let moved = MovedStream { stream: Stream::Cluster(ClusterId(3)), term: 9, to: name("b") };
    a.client(&b).moved(&moved).await.unwrap();
    assert_eq!(b.handler.moves.wait(1, |_| true).await, (name("a"), moved));
}
