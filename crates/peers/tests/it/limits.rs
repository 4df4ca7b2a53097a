//! Limits of messages, and messages that are malformed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request, RequestContext, ResourceWrite, Transaction};
use forewarn_control::resources::Body;
use forewarn_peers::{
    ForwardOutcome, ListenerLimits, PeerError, REQUEST_BYTES_MAX, ReceivedRequest, RequestAnswer, SeenNumbers,
};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::raw_client::{connect, say};
use crate::support::{DEADLINE, Realm, TestServer, name, unavailable};

/// A request with a body of so many bytes, which base 64 makes larger by a third.
fn request_of(bytes: usize) -> Arc<Request> {
    let empty = || Body(Vec::new().into());
    let body = Body(vec![7; bytes].into());
    let write = ResourceWrite::Put { id: "/r".to_owned(), link: None, body, notes: empty() };
    let transaction = Transaction { writes: vec![write], ..Transaction::default() };
    let context = RequestContext::default();
    Arc::new(Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Transaction { transaction, context }))
}

/// A connection of server `a` of the realm.
async fn raw(realm: &Realm, server: &TestServer) -> TlsStream<TcpStream> {
    let credentials = realm.authority().issue(&name("a"), &[], SystemTime::now()).unwrap();
    let authorities = credentials.authorities.clone();
    connect(server.address, server.identity.name().as_str(), &authorities, Some(credentials)).await.unwrap()
}

#[tokio::test]
async fn a_request_may_be_large_but_not_too_large() {
    let realm = Realm::new();
    let answer = |request: &ReceivedRequest| {
        assert_eq!(request.request.stream().to_string(), "cluster-0");
        unavailable(request)
    };
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), answer).await);
    let client = a.client(&b);
    let fits = request_of(REQUEST_BYTES_MAX / 4 * 3 - 4_096);
    assert!(matches!(client.forward(1, SeenNumbers::new(), &fits).await, ForwardOutcome::Answered(_)));
    let outcome = client.forward(1, SeenNumbers::new(), &request_of(REQUEST_BYTES_MAX / 4 * 3)).await;
    let ForwardOutcome::NotSent(PeerError::TooLarge { bytes, max }) = outcome else { panic!("{outcome:?}") };
    assert!(bytes > max && max == REQUEST_BYTES_MAX);
    assert_eq!(b.handler.requests.count(|_| true), 1);
}

#[tokio::test]
async fn the_listener_does_not_read_what_is_too_large() {
    let realm = Realm::new();
    let b = realm.server("b").await;
    let announced = REQUEST_BYTES_MAX + 1;
    for head in [
        format!("POST /peer/v1/request HTTP/1.1\r\nhost: x\r\ncontent-length: {announced}\r\n\r\n"),
        "POST /peer/v1/heartbeat HTTP/1.1\r\nhost: x\r\ncontent-length: 1048577\r\n\r\n".to_owned(),
        "POST /peer/v1/moved HTTP/1.1\r\nhost: x\r\ncontent-length: 65537\r\n\r\n".to_owned(),
    ] {
        let answer = say(&mut raw(&realm, &b).await, head.as_bytes()).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{head}: {answer}");
    }
    // A body without an announced length is counted.
    let chunk = format!("10001\r\n{}\r\n", "x".repeat(65_537));
    let head = "POST /peer/v1/moved HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = say(&mut raw(&realm, &b).await, format!("{head}{chunk}").as_bytes()).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_message_that_does_not_arrive_is_given_up() {
    let realm = Realm::new();
    let short = Duration::from_millis(100);
    let limits =
        ListenerLimits { handshake: DEADLINE, head: short, body: short, ..ListenerLimits::default() };
    let address = "127.0.0.1:0".parse().unwrap();
    let b = TestServer::start_with(realm.identity("b"), unavailable, limits, address).await;
    let half = b"POST /peer/v1/moved HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    let answer = say(&mut raw(&realm, &b).await, half).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    // Without a whole head there is nothing to answer.
    let answer = say(&mut raw(&realm, &b).await, b"POST /peer/v1/mo").await.unwrap_or_default();
    assert!(!answer.contains("200"), "{answer}");
    let limits = ListenerLimits { handshake: short, ..ListenerLimits::default() };
    let b = TestServer::start_with(realm.identity("b"), unavailable, limits, address).await;
    let _idle = TcpStream::connect(b.address).await.unwrap();
    let noted = b.handler.rejections.wait(1, |_| true).await;
    assert_eq!(noted.reason, "the TLS handshake takes too long");
}

#[tokio::test]
async fn a_handler_that_takes_too_long_leaves_the_outcome_unknown() {
    let realm = Realm::new();
    let limits = ListenerLimits {
        handshake: DEADLINE,
        handler: Duration::from_millis(50),
        ..ListenerLimits::default()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let a = realm.server("a").await;
    let b = TestServer::start_with(realm.identity("b"), unavailable, limits, address).await;
    b.handler.holds_requests.send_replace(true);
    let outcome = a.client(&b).forward(1, SeenNumbers::new(), &request_of(1)).await;
    let reason = "the answer takes too long".to_owned();
    assert_eq!(outcome, ForwardOutcome::Unknown(PeerError::Rejected { status: 504, reason }));
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let realm = Realm::new();
    let limits = ListenerLimits { handshake: DEADLINE, connections: 1, ..ListenerLimits::default() };
    let address = "127.0.0.1:0".parse().unwrap();
    let (a, c) = (realm.server("a").await, realm.server("c").await);
    let b = TestServer::start_with(realm.identity("b"), unavailable, limits, address).await;
    let client = a.client(&b);
    assert!(matches!(
        client.forward(1, SeenNumbers::new(), &request_of(1)).await,
        ForwardOutcome::Answered(_)
    ));
    let outcome = c.client(&b).forward(1, SeenNumbers::new(), &request_of(1)).await;
    assert!(matches!(outcome, ForwardOutcome::NotSent(PeerError::Handshake(_))), "{outcome:?}");
    assert_eq!(b.handler.rejections.wait(1, |_| true).await.reason, "too many connections");
}

#[tokio::test]
async fn malformed_messages_are_rejected_with_a_reason() {
    let realm = Realm::new();
    let b = realm.server("b").await;
    let post = |path: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let heartbeat = serde_json::to_string(&b.handler.state()).unwrap();
    let hops =
        |hops: u8| format!(r#"{{"term":1,"hops":{hops},"seen":{{}},"request":{{"Cluster":[0,"Sweep"]}}}}"#);
    let cases = [
        (post("/peer/v1/request", "{}"), 400, "missing field `term`"),
        (post("/peer/v1/request", "not JSON"), 400, "expected"),
        (post("/peer/v1/request", &hops(2)), 508, "the request was forwarded already"),
        (post("/peer/v1/request", &hops(1)), 200, "Unavailable"),
        (post("/peer/v1/heartbeat", &heartbeat), 403, "a heartbeat of b from server a"),
        (post("/peer/v1/moved", r#"{"stream":"x"}"#), 400, "not a stream"),
        (get("/peer/v1/audit?stream=shared"), 400, "not a query of audit entries"),
        (get("/peer/v1/request"), 405, "another method is needed"),
        (get("/peer/v2/hello"), 404, "no such message"),
        (get("/"), 404, "no such message"),
    ];
    for (message, status, reason) in cases {
        let answer = say(&mut raw(&realm, &b).await, message.as_bytes()).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{message}: {answer}");
        assert!(answer.contains(reason), "{message}: {answer}");
    }
}

#[tokio::test]
async fn a_handler_that_fails_leaves_the_outcome_unknown() {
    let realm = Realm::new();
    let fails = |_: &ReceivedRequest| -> RequestAnswer { panic!("a handler that fails in a test") };
    let (a, b) = (realm.server("a").await, TestServer::start(realm.identity("b"), fails).await);
    let outcome = a.client(&b).forward(1, SeenNumbers::new(), &request_of(1)).await;
    assert!(
        matches!(outcome, ForwardOutcome::Unknown(PeerError::Rejected { status: 500, .. })),
        "{outcome:?}"
    );
}
