//! The HTTP listener of the agent, over real connections.

use super::*;
use crate::peers::Nonce;
use crate::status::{EndpointView, Status};
use crate::status_board::{PublishedStatus, RetryRequest};
use forewarn_agent_core::{PeerStatus, Phase, Task};
use forewarn_types::EventId;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

/// Deadline for conditions in tests, longer than any of them takes.
const TIMEOUT: Duration = Duration::from_secs(60);

struct WebFixture {
    address: SocketAddr,
    status_board: watch::Sender<Arc<PublishedStatus>>,
    requests: mpsc::Receiver<RetryRequest>,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

fn published_status(ready: bool, drained: bool) -> Arc<PublishedStatus> {
    let peer_status = PeerStatus { name: "web_0".to_owned(), ..PeerStatus::default() };
    let status = Status { name: Some("web_0".to_owned()), ..Status::new(EndpointView::default()) };
    Arc::new(PublishedStatus { ready, drained, peer_status, status: Arc::new(status) })
}

async fn fixture(key: Option<Key>) -> WebFixture {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (status_board, published) = watch::channel(published_status(false, false));
    let (retries, requests) = mpsc::channel(1);
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(serve(
        listener,
        Board { published, retries },
        || "polls_total 7\n# EOF\n".to_owned(),
        key,
        PeerAddresses::default(),
        stopped,
    ));
    WebFixture { address, status_board, requests, stop, serving }
}

impl WebFixture {
    /// The complete response to these bytes.
    async fn send(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut response = String::new();
        // The connection may be closed before all bytes were read.
        timeout(TIMEOUT, stream.read_to_string(&mut response)).await.expect("an end").ok();
        response
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let response = self.send(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).await;
        (status(&response), response.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    async fn send_peer_request(&self, fields: &str) -> String {
        self.send(&format!("GET /peers/v1/status HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await
    }
}

fn status(response: &str) -> u16 {
    response.get(9..12).unwrap_or_else(|| panic!("no response: {response:?}")).parse().unwrap()
}

fn response_of(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

#[tokio::test]
async fn supervisors_collectors_and_load_balancers_get_the_state() {
    let fixture = fixture(None).await;
    assert_eq!(fixture.get("/healthz").await, response_of(200, "ok\n"));
    assert_eq!(fixture.get("/readyz").await, response_of(503, "not ready\n"));
    assert_eq!(fixture.get("/ready").await, response_of(200, "serving\n"));
    fixture.status_board.send_replace(published_status(true, true));
    assert_eq!(fixture.get("/readyz").await, response_of(200, "ready\n"));
    assert_eq!(fixture.get("/ready").await, response_of(503, "draining\n"));
    assert_eq!(fixture.get("/metrics").await, response_of(200, "polls_total 7\n# EOF\n"));
    let (code, body) = fixture.get("/status").await;
    let x: Status = serde_json::from_str(&body).unwrap();
    assert_eq!((code, x.name.as_deref()), (200, Some("web_0")));
    assert_eq!(fixture.get("/ready?from=haproxy").await.0, 503);
    let head = fixture.send("HEAD /ready HTTP/1.0\r\n\r\n").await;
    assert!(status(&head) == 503 && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_done_is_refused() {
    let fixture = fixture(None).await;
    assert_eq!(fixture.get("/").await.0, 404);
    assert_eq!(fixture.get("/ready/").await.0, 404);
    assert_eq!(fixture.get("/peers/v1/status").await, response_of(404, "this agent has no peer key\n"));
    let post = fixture.send("POST /ready HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
    assert!(status(&post) == 405 && post.to_lowercase().contains("\r\nallow: get, head\r\n"), "{post}");
    let body = fixture.send("GET /ready HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(status(&body), 413);
    let long = format!("GET /ready HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert!(matches!(fixture.send(&long).await.get(9..12), None | Some("431")));
    assert_eq!(status(&fixture.send("nonsense\r\n\r\n").await), 400);
}

#[test]
fn the_status_is_for_this_machine_only_and_for_no_web_page_on_it() {
    let (_, published) = watch::channel(published_status(true, false));
    let board = Board { published, retries: mpsc::channel(1).0 };
    let handler = RequestHandler { board, metrics: String::new, key: None };
    let send_peer_request = |from: &str, here: &str, host: &str| {
        let request = hyper::Request::get("/status").header("host", host).body(String::new()).unwrap();
        handler.respond_from_board(&request, from.parse().unwrap(), here.parse().ok()).status().as_u16()
    };
    for (from, host) in [
        ("127.0.0.1", "127.0.0.1:9911"),
        ("::1", "[::1]:9911"),
        ("::1", "[::1]"),
        ("::ffff:127.0.0.1", "localhost:9911"),
        ("127.0.0.9", "localhost"),
    ] {
        assert_eq!(send_peer_request(from, "10.0.0.9", host), 200, "{from} {host}");
    }
    for own in ["10.0.0.4", "::ffff:10.0.0.4", "fd00::4"] {
        assert_eq!(send_peer_request(own, own, "10.0.0.4:9911"), 200, "{own}");
        assert_eq!(send_peer_request(own, own, "evil.example:9911"), 403, "{own}");
        assert_eq!(send_peer_request(own, "", "10.0.0.4:9911"), 403, "{own}");
    }
    for (from, host) in [
        ("10.0.0.4", "127.0.0.1:9911"),
        ("::ffff:10.0.0.4", "localhost"),
        ("127.0.0.1", "evil.example:9911"),
        ("127.0.0.1", ""),
    ] {
        assert_eq!(send_peer_request(from, "10.0.0.9", host), 403, "{from} {host}");
    }
}

#[tokio::test]
async fn only_a_peer_with_the_key_gets_the_status() {
    let (key, other) = (Key::new(&[1; 32]).unwrap(), Key::new(&[2; 32]).unwrap());
    let fixture = fixture(Some(key.clone())).await;
    let nonce = Nonce::random().unwrap();
    let fields = |peer: &str, proof: &str| {
        format!("Forewarn-Peer: {peer}\r\nForewarn-Nonce: {}\r\nForewarn-Proof: {proof}\r\n", nonce.as_str())
    };
    let response = fixture.send_peer_request(&fields("web_1", &key.prove_request(&nonce, "web_1"))).await;
    assert_eq!(status(&response), 200);
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"name":"web_0","events":{}}"#);
    let proof = head.lines().find_map(|line| line.strip_prefix("forewarn-proof: ")).unwrap();
    assert!(key.is_response(&nonce, body.as_bytes(), proof));

    let nameless = PublishedStatus {
        peer_status: PeerStatus::default(),
        ..PublishedStatus::clone(&published_status(false, false))
    };
    fixture.status_board.send_replace(Arc::new(nameless));
    assert_eq!(
        status(&fixture.send_peer_request(&fields("web_1", &key.prove_request(&nonce, "web_1"))).await),
        503
    );

    let peer_status = key.prove_response(&nonce, b"web_1");
    for wrong in [
        String::new(),
        fields("web_1", &other.prove_request(&nonce, "web_1")),
        fields("web_2", &key.prove_request(&nonce, "web_1")),
        fields("web_1", &peer_status),
        fields("web_1", "00"),
        fields("", &key.prove_request(&nonce, "")),
        fields("web_1", &key.prove_request(&nonce, "web_1")).replace("Nonce: ", "Nonce: 0"),
        format!("Forewarn-Proof: {}\r\n", key.prove_request(&nonce, "web_1")),
    ] {
        let response = fixture.send_peer_request(&wrong).await;
        assert!(
            status(&response) == 403 && response.ends_with("only available to peers\n"),
            "{wrong}: {response}"
        );
    }
}

/// Connections from that address that never finish their request.
async fn unfinished(fixture: &WebFixture, from: Ipv4Addr, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let mut stream = socket.connect(fixture.address).await.unwrap();
        // The agent may have closed it already.
        stream.write_all(b"GET /ready HT").await.ok();
        streams.push(stream);
    }
    streams
}

/// promise: A5
#[tokio::test]
async fn unfinished_requests_block_no_caller_and_get_503() {
    let fixture = fixture(None).await;
    let streams = unfinished(&fixture, Ipv4Addr::LOCALHOST, 400).await;
    // Their five seconds for the head have not passed, yet they lose their slots.
    assert_eq!(fixture.get("/healthz").await.0, 200);
    let mut busy = 0;
    for mut stream in streams {
        let mut rest = Vec::new();
        timeout(TIMEOUT, stream.read_to_end(&mut rest)).await.expect("an end").ok();
        busy += usize::from(rest == BUSY);
    }
    assert!(busy > 300, "{busy} of 400 were answered 503");
    assert!(BUSY.ends_with(b"content-length: 21\r\n\r\ntoo many connections\n"));
}

/// promise: A5
#[tokio::test]
async fn a_peer_is_answered_while_strangers_fill_every_slot() {
    let key = Key::new(&[1; 32]).unwrap();
    let fixture = fixture(Some(key.clone())).await;
    let nonce = Nonce::random().unwrap();
    let proof = key.prove_request(&nonce, "web_1");
    let fields =
        format!("Forewarn-Peer: web_1\r\nForewarn-Nonce: {}\r\nForewarn-Proof: {proof}\r\n", nonce.as_str());
    let mut strangers = Vec::new();
    for number in 1..=20 {
        strangers.extend(unfinished(&fixture, Ipv4Addr::new(127, 8, 8, number), 20).await);
        assert_eq!(
            status(&fixture.send_peer_request(&fields).await),
            200,
            "after {} strangers",
            strangers.len()
        );
    }
    // From a known address, the head may take its time.
    let mut slow = TcpStream::connect(fixture.address).await.unwrap();
    slow.write_all(b"GET /peers/v1/status HTTP/1.1\r\nHost: h\r\n").await.unwrap();
    strangers.extend(unfinished(&fixture, Ipv4Addr::new(127, 8, 8, 30), 200).await);
    slow.write_all(format!("{fields}\r\n").as_bytes()).await.unwrap();
    let mut response = String::new();
    timeout(TIMEOUT, slow.read_to_string(&mut response)).await.expect("an end").unwrap();
    assert_eq!(status(&response), 200);
}

#[tokio::test]
async fn a_stop_request_ends_the_listener() {
    let fixture = fixture(None).await;
    assert_eq!(fixture.get("/healthz").await.0, 200);
    fixture.stop.send_replace(true);
    timeout(TIMEOUT, fixture.serving).await.expect("an end").unwrap();
}

/// promise: A5
#[tokio::test]
async fn a_retry_is_for_the_command_on_this_machine_only() {
    let mut fixture = fixture(None).await;
    let own = "Forewarn-Agent: 1\r\n";
    let wrong = [
        ("GET /retry", "127.0.0.1", own, 405),
        ("POST /retry", "127.0.0.1", "", 403),
        ("POST /retry", "attacker.example", own, 403),
        ("POST /retry/1234", "127.0.0.1", own, 400),
        ("POST /retrying", "127.0.0.1", own, 404),
        ("POST /retry", "127.0.0.1", "Forewarn-Agent: 1\r\nContent-Length: 3\r\n", 413),
    ];
    for (line, host, fields, code) in wrong {
        let response = fixture.send(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")).await;
        assert_eq!(status(&response), code, "{line} {host} {fields}: {response}");
    }
    assert!(fixture.requests.try_recv().is_err(), "the agent has heard of none of them");
    let event = EventId::from_bytes([7; 16]);
    for (path, wanted) in [("/retry".to_owned(), None), (format!("/retry/{event}"), Some(event))] {
        let request = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{own}\r\n");
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let asked = timeout(TIMEOUT, fixture.requests.recv()).await.expect("in time").unwrap();
        assert_eq!(asked.event, wanted);
        let task = Task { event, phase: Phase::Scheduled, hook: "drain".to_owned() };
        asked.retried.send(vec![task]).unwrap();
        let mut response = String::new();
        timeout(TIMEOUT, stream.read_to_string(&mut response)).await.expect("an end").unwrap();
        let expected = format!(r#"[{{"event":"{event}","phase":"scheduled","hook":"drain"}}]"#);
        assert!(status(&response) == 200 && response.ends_with(&expected), "{response}");
    }
}
