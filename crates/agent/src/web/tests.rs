//! The agent's own endpoint, asked over real connections.

use super::*;
use crate::peers::Nonce;
use crate::status::{EndpointView, Status};
use forewarn_agent_core::PeerWord;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

/// Longer than anything takes. Whoever waits for it has failed already.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    address: SocketAddr,
    board: watch::Sender<Arc<Shown>>,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

fn shown(ready: bool, drained: bool) -> Arc<Shown> {
    let word = PeerWord { name: "web_0".to_owned(), ..PeerWord::default() };
    let status = Status { name: Some("web_0".to_owned()), ..Status::new(EndpointView::default()) };
    Arc::new(Shown { ready, drained, word, status: Arc::new(status) })
}

async fn place(key: Option<Key>) -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (board, seen) = watch::channel(shown(false, false));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(serve(
        listener,
        seen,
        || "polls_total 7\n# EOF\n".to_owned(),
        key,
        PeerAddresses::default(),
        stopped,
    ));
    Place { address, board, stop, serving }
}

impl Place {
    /// Everything that is answered to these bytes.
    async fn send(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // It may be closed before everything was read that was sent.
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an end").ok();
        answer
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.send(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).await;
        (status(&answer), answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    async fn ask(&self, fields: &str) -> String {
        self.send(&format!("GET /peers/v1/word HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await
    }
}

fn status(answer: &str) -> u16 {
    answer.get(9..12).unwrap_or_else(|| panic!("no answer: {answer:?}")).parse().unwrap()
}

fn answered(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

#[tokio::test]
async fn supervisors_collectors_and_load_balancers_are_told_how_it_is() {
    let place = place(None).await;
    assert_eq!(place.get("/healthz").await, answered(200, "ok\n"));
    assert_eq!(place.get("/readyz").await, answered(503, "not ready\n"));
    assert_eq!(place.get("/ready").await, answered(200, "serving\n"));
    place.board.send_replace(shown(true, true));
    assert_eq!(place.get("/readyz").await, answered(200, "ready\n"));
    assert_eq!(place.get("/ready").await, answered(503, "draining\n"));
    assert_eq!(place.get("/metrics").await, answered(200, "polls_total 7\n# EOF\n"));
    let (code, body) = place.get("/status").await;
    let told: Status = serde_json::from_str(&body).unwrap();
    assert_eq!((code, told.name.as_deref()), (200, Some("web_0")));
    assert_eq!(place.get("/ready?from=haproxy").await.0, 503);
    let head = place.send("HEAD /ready HTTP/1.0\r\n\r\n").await;
    assert!(status(&head) == 503 && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_done_is_refused() {
    let place = place(None).await;
    assert_eq!(place.get("/").await.0, 404);
    assert_eq!(place.get("/ready/").await.0, 404);
    assert_eq!(place.get("/peers/v1/word").await, answered(404, "this agent has no key, and so no peers\n"));
    let post = place.send("POST /ready HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
    assert!(status(&post) == 405 && post.to_lowercase().contains("\r\nallow: get, head\r\n"), "{post}");
    let body = place.send("GET /ready HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(status(&body), 413);
    let long = format!("GET /ready HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert!(matches!(place.send(&long).await.get(9..12), None | Some("431")));
    assert_eq!(status(&place.send("nonsense\r\n\r\n").await), 400);
}

#[test]
fn the_status_is_for_this_machine_only_and_for_no_web_page_on_it() {
    let (_, board) = watch::channel(shown(true, false));
    let desk = Desk { board, metrics: String::new, key: None };
    let ask = |from: &str, here: &str, host: &str| {
        let request = hyper::Request::get("/status").header("host", host).body(String::new()).unwrap();
        desk.answer(&request, from.parse().unwrap(), here.parse().ok()).status().as_u16()
    };
    for (from, host) in [
        ("127.0.0.1", "127.0.0.1:9911"),
        ("::1", "[::1]:9911"),
        ("::1", "[::1]"),
        ("::ffff:127.0.0.1", "localhost:9911"),
        ("127.0.0.9", "localhost"),
    ] {
        assert_eq!(ask(from, "10.0.0.9", host), 200, "{from} {host}");
    }
    for own in ["10.0.0.4", "::ffff:10.0.0.4", "fd00::4"] {
        assert_eq!(ask(own, own, "10.0.0.4:9911"), 200, "{own}");
        assert_eq!(ask(own, own, "evil.example:9911"), 403, "{own}");
        assert_eq!(ask(own, "", "10.0.0.4:9911"), 403, "{own}");
    }
    for (from, host) in [
        ("10.0.0.4", "127.0.0.1:9911"),
        ("::ffff:10.0.0.4", "localhost"),
        ("127.0.0.1", "evil.example:9911"),
        ("127.0.0.1", ""),
    ] {
        assert_eq!(ask(from, "10.0.0.9", host), 403, "{from} {host}");
    }
}

#[tokio::test]
async fn a_peer_is_told_if_it_has_the_key_and_nobody_else() {
    let (key, other) = (Key::new(&[1; 32]).unwrap(), Key::new(&[2; 32]).unwrap());
    let place = place(Some(key.clone())).await;
    let nonce = Nonce::fresh().unwrap();
    let fields = |asker: &str, proof: &str| {
        format!(
            "Forewarn-Asker: {asker}\r\nForewarn-Nonce: {}\r\nForewarn-Proof: {proof}\r\n",
            nonce.as_str()
        )
    };
    let answer = place.ask(&fields("web_1", &key.prove_ask(&nonce, "web_1"))).await;
    assert_eq!(status(&answer), 200);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"name":"web_0","events":{}}"#);
    let proof = head.lines().find_map(|line| line.strip_prefix("forewarn-proof: ")).unwrap();
    assert!(key.is_word(&nonce, body.as_bytes(), proof));

    let nameless = Shown { word: PeerWord::default(), ..Shown::clone(&shown(false, false)) };
    place.board.send_replace(Arc::new(nameless));
    assert_eq!(status(&place.ask(&fields("web_1", &key.prove_ask(&nonce, "web_1"))).await), 503);

    let word = key.prove_word(&nonce, b"web_1");
    for wrong in [
        String::new(),
        fields("web_1", &other.prove_ask(&nonce, "web_1")),
        fields("web_2", &key.prove_ask(&nonce, "web_1")),
        fields("web_1", &word),
        fields("web_1", "00"),
        fields("", &key.prove_ask(&nonce, "")),
        fields("web_1", &key.prove_ask(&nonce, "web_1")).replace("Nonce: ", "Nonce: 0"),
        format!("Forewarn-Proof: {}\r\n", key.prove_ask(&nonce, "web_1")),
    ] {
        let answer = place.ask(&wrong).await;
        assert!(status(&answer) == 403 && answer.ends_with("only peers are told\n"), "{wrong}: {answer}");
    }
}

/// Connections that never finish their request, from that address.
async fn unfinished(place: &Place, from: Ipv4Addr, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let mut stream = socket.connect(place.address).await.unwrap();
        // The agent may have closed it already.
        stream.write_all(b"GET /ready HT").await.ok();
        streams.push(stream);
    }
    streams
}

#[tokio::test]
async fn unfinished_requests_make_nobody_wait_and_are_answered_503() {
    let place = place(None).await;
    let streams = unfinished(&place, Ipv4Addr::LOCALHOST, 400).await;
    // None of them has had the five seconds of a head: they give way.
    assert_eq!(place.get("/healthz").await.0, 200);
    let mut busy = 0;
    for mut stream in streams {
        let mut rest = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end").ok();
        busy += usize::from(rest == BUSY);
    }
    assert!(busy > 300, "{busy} of 400 were answered 503");
    assert!(BUSY.ends_with(b"content-length: 21\r\n\r\ntoo many connections\n"));
}

#[tokio::test]
async fn a_peer_is_answered_while_strangers_fill_every_slot() {
    let key = Key::new(&[1; 32]).unwrap();
    let place = place(Some(key.clone())).await;
    let nonce = Nonce::fresh().unwrap();
    let proof = key.prove_ask(&nonce, "web_1");
    let fields =
        format!("Forewarn-Asker: web_1\r\nForewarn-Nonce: {}\r\nForewarn-Proof: {proof}\r\n", nonce.as_str());
    let mut strangers = Vec::new();
    for number in 1..=20 {
        strangers.extend(unfinished(&place, Ipv4Addr::new(127, 8, 8, number), 20).await);
        assert_eq!(status(&place.ask(&fields).await), 200, "after {} strangers", strangers.len());
    }
    // From a known address, the head may take its time.
    let mut slow = TcpStream::connect(place.address).await.unwrap();
    slow.write_all(b"GET /peers/v1/word HTTP/1.1\r\nHost: h\r\n").await.unwrap();
    strangers.extend(unfinished(&place, Ipv4Addr::new(127, 8, 8, 30), 200).await);
    slow.write_all(format!("{fields}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, slow.read_to_string(&mut answer)).await.expect("an end").unwrap();
    assert_eq!(status(&answer), 200);
}

#[tokio::test]
async fn told_to_stop_it_stops() {
    let place = place(None).await;
    assert_eq!(place.get("/healthz").await.0, 200);
    place.stop.send_replace(true);
    timeout(PATIENCE, place.serving).await.expect("an end").unwrap();
}
