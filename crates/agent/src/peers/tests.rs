//! Polling of peers: responsive, hanging, and malicious ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_agent_core::{PeerEventStatus, PeerReport, PeerStatus, PeersToPoll, Stage};
use forewarn_client::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::PeerDiscovery;
use super::{Key, Nonce, PeerAddresses, PeerClient, PeerNews, PeerPoller};
use crate::status::{EndpointView, Status};
use crate::status_board::{Board, PublishedStatus};
use crate::web;

fn key(byte: u8) -> Key {
    Key::new(&[byte; 40]).unwrap()
}

fn status(name: &str) -> PeerStatus {
    let standing = PeerEventStatus { stage: Stage::Ready, approved: true };
    PeerStatus { name: name.to_owned(), events: [("28512AF7".to_owned(), standing)].into() }
}

/// Starts an agent with that status; returns its address.
async fn agent(peer_status: PeerStatus, key: Key) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let status = Arc::new(Status::new(EndpointView::default()));
        let (_board, published) =
            watch::channel(Arc::new(PublishedStatus { ready: true, drained: false, peer_status, status }));
        let (_stop, stopped) = watch::channel(false);
        let board = Board { published, retries: mpsc::channel(1).0 };
        web::serve(listener, board, String::new, Some(key), PeerAddresses::default(), stopped).await;
    });
    address
}

/// Starts a peer that computes its response from the nonce; `None` never responds.
async fn scripted_peer(respond: impl Fn(Nonce) -> Option<String> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            while !text.contains("\r\n\r\n") {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                text.push_str(str::from_utf8(&buffer[..count]).unwrap());
            }
            let nonce = text.lines().find_map(|line| line.strip_prefix("forewarn-nonce: ")).unwrap();
            match respond(Nonce::parse(nonce).unwrap()) {
                Some(respond) => stream.write_all(respond.as_bytes()).await.unwrap_or_default(),
                None => drop(tokio::spawn(async move {
                    let _kept = stream;
                    std::future::pending::<()>().await;
                })),
            }
        }
    });
    address
}

fn signed(key: &Key, nonce: &Nonce, body: &str) -> String {
    let proof = key.prove_response(nonce, body.as_bytes());
    format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\nForewarn-Proof: {proof}\r\n\r\n{body}", body.len())
}

fn client(list: &[(&str, &str)]) -> PeerClient {
    let list: BTreeMap<_, _> =
        list.iter().map(|(name, address)| ((*name).to_owned(), (*address).to_owned())).collect();
    PeerClient::new(PeerDiscovery::List(list), key(1), "web_0", unreachable(), PeerAddresses::default())
}

/// All reports of one round.
async fn reports(client: &PeerClient, peers_to_poll: &PeersToPoll) -> Vec<PeerReport> {
    let mut poller = PeerPoller::default();
    poller.set_client(Some(client.clone()));
    poller.poll(peers_to_poll);
    let mut reports = Vec::new();
    while let PeerNews::Report(report) = poller.next().await {
        reports.push(report);
    }
    reports
}

async fn round(client: &PeerClient, peers_to_poll: &PeersToPoll) -> Vec<PeerStatus> {
    let status = |report| match report {
        PeerReport::Status(status) => Some(status),
        PeerReport::Alive(_) | PeerReport::Failed { .. } => None,
    };
    reports(client, peers_to_poll).await.into_iter().filter_map(status).collect()
}

fn unreachable() -> Endpoint {
    Endpoint::parse("http://127.0.0.1:9").unwrap()
}

/// promise: A5
#[tokio::test]
async fn one_that_hangs_and_one_that_is_gone_do_not_keep_the_others_from_being_heard() {
    let one = agent(status("web_1"), key(1)).await;
    let hangs = scripted_peer(|_| None).await;
    let other = agent(status("web_3"), key(1)).await;
    let client = client(&[
        ("web_0", &one),
        ("web_1", &one),
        ("web_2", &hangs),
        ("web_3", &other),
        ("web_4", "127.0.0.1:9"),
        ("web_5", "unknown.invalid:9"),
    ]);
    let begin = Instant::now();
    let mut statuses = round(&client, &PeersToPoll::All).await;
    statuses.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(statuses, [status("web_1"), status("web_3")]);
    assert!(begin.elapsed() >= Duration::from_secs(2), "the one that hangs was given its time");
    let these = PeersToPoll::Named(vec!["web_3".to_owned()]);
    assert_eq!(round(&client, &these).await, [status("web_3")]);
}

/// promise: A5
#[tokio::test]
async fn a_peer_with_another_key_is_rejected_both_ways() {
    let stranger = agent(status("web_1"), key(2)).await;
    assert_eq!(round(&client(&[("web_1", &stranger)]), &PeersToPoll::All).await, []);
    let body = serde_json::to_string(&status("web_1")).unwrap();
    let forger = scripted_peer(move |nonce| Some(signed(&key(2), &nonce, &body))).await;
    assert_eq!(round(&client(&[("web_1", &forger)]), &PeersToPoll::All).await, []);
}

/// promise: A5
#[tokio::test]
async fn a_response_to_another_request_is_rejected() {
    let body = serde_json::to_string(&status("web_1")).unwrap();
    // A replayed response.
    let old = Nonce::random().unwrap();
    let reported = signed(&key(1), &old, &body);
    let repeats = scripted_peer(move |_| Some(reported.clone())).await;
    assert_eq!(round(&client(&[("web_1", &repeats)]), &PeersToPoll::All).await, []);
    let body = serde_json::to_string(&status("web_1")).unwrap();
    let honest = scripted_peer(move |nonce| Some(signed(&key(1), &nonce, &body))).await;
    assert_eq!(round(&client(&[("web_1", &honest)]), &PeersToPoll::All).await, [status("web_1")]);
}

/// promise: A5
#[tokio::test]
async fn modified_unsigned_or_malformed_responses_are_rejected() {
    let body = serde_json::to_string(&status("web_1")).unwrap();
    let changed = body.clone();
    let changes =
        scripted_peer(move |nonce| Some(signed(&key(1), &nonce, &changed).replace("\"ready\"", "\"idle\" ")))
            .await;
    let bare = scripted_peer(move |_| {
        Some(format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    })
    .await;
    let unexpected =
        scripted_peer(|nonce| Some(signed(&key(1), &nonce, "{\"name\":\"\",\"events\":{}}"))).await;
    let long =
        scripted_peer(|nonce| Some(signed(&key(1), &nonce, &format!("\"{}\"", "x".repeat(300 * 1024)))))
            .await;
    let moved =
        scripted_peer(|_| Some("HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned()))
            .await;
    for address in [changes, bare, unexpected, long, moved] {
        assert_eq!(round(&client(&[("web_1", &address)]), &PeersToPoll::All).await, []);
    }
}

#[tokio::test]
async fn a_machine_reports_for_itself_only_and_skips_itself() {
    let other = agent(status("web_2"), key(1)).await;
    assert_eq!(round(&client(&[("web_1", &other)]), &PeersToPoll::All).await, [], "it has another name");
    let oneself = agent(status("web_0"), key(1)).await;
    let by_dns = |address: &str| {
        PeerClient::new(
            PeerDiscovery::Dns(address.to_owned()),
            key(1),
            "web_0",
            unreachable(),
            PeerAddresses::default(),
        )
    };
    assert_eq!(round(&by_dns(&oneself), &PeersToPoll::All).await, []);
    assert_eq!(round(&by_dns(&other), &PeersToPoll::All).await, [status("web_2")], "a name is learnt");
}

/// promise: A5
#[tokio::test]
async fn a_peer_that_hangs_does_not_delay_the_words_of_the_others() {
    let one = agent(status("web_1"), key(1)).await;
    let hangs = scripted_peer(|_| None).await;
    let mut poller = PeerPoller::default();
    poller.set_client(Some(client(&[("web_1", &one), ("web_2", &hangs)])));
    let (begin, mut received) = (Instant::now(), 0);
    // The request to the hanging peer takes two seconds: the other one is polled more than once meanwhile.
    loop {
        poller.poll(&PeersToPoll::All);
        let due = poller.due_in();
        tokio::select! {
            news = poller.next() => match news {
                PeerNews::Report(PeerReport::Failed { name, .. }) => assert_eq!(name, "web_2"),
                PeerNews::Report(report) => {
                    assert_eq!(report, PeerReport::Status(status("web_1")));
                    received += 1;
                }
                PeerNews::RoundEnded { .. } => break,
            },
            () = tokio::time::sleep(due) => {}
        }
    }
    assert!(begin.elapsed() >= Duration::from_secs(2), "the one that hangs was given its time");
    assert!(received >= 2, "heard {received} times");
}

/// promise: A5
#[tokio::test]
async fn an_agent_that_has_no_time_is_alive() {
    let busy = || scripted_peer(|_| Some("HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\nbusy\n".to_owned()));
    let alive = [PeerReport::Alive("web_1".to_owned())];
    let address = busy().await;
    assert_eq!(reports(&client(&[("web_1", &address)]), &PeersToPoll::All).await, alive);
    // The name of a peer found by DNS is known after its first response.
    let body = serde_json::to_string(&status("web_1")).unwrap();
    let responses = std::sync::atomic::AtomicUsize::new(0);
    let address =
        scripted_peer(move |nonce| match responses.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 2 => Some("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n".to_owned()),
            _ => Some(signed(&key(1), &nonce, &body)),
        })
        .await;
    let client = PeerClient::new(
        PeerDiscovery::Dns(address),
        key(1),
        "web_0",
        unreachable(),
        PeerAddresses::default(),
    );
    assert_eq!(reports(&client, &PeersToPoll::All).await, [], "its name is unknown");
    assert_eq!(reports(&client, &PeersToPoll::All).await, [PeerReport::Status(status("web_1"))]);
    assert_eq!(reports(&client, &PeersToPoll::All).await, alive);
}

/// promise: A5
#[tokio::test]
async fn a_peer_that_says_something_else_is_alive() {
    let alive = [PeerReport::Alive("web_1".to_owned())];
    // A later version may have other stages, and a report may be too long.
    let later = r#"{"name":"web_1","events":{"28512AF7":{"stage":"resting","approved":false}}}"#;
    let strange = scripted_peer(|nonce| Some(signed(&key(1), &nonce, later))).await;
    assert_eq!(reports(&client(&[("web_1", &strange)]), &PeersToPoll::All).await, alive);
    let long =
        scripted_peer(|nonce| Some(signed(&key(1), &nonce, &format!("\"{}\"", "x".repeat(300 * 1024)))))
            .await;
    assert_eq!(reports(&client(&[("web_1", &long)]), &PeersToPoll::All).await, alive);
}

#[tokio::test]
async fn the_error_of_a_peer_is_reported_with_its_name() {
    let stranger = agent(status("web_1"), key(2)).await;
    let found = reports(&client(&[("web_1", &stranger), ("web_4", "127.0.0.1:9")]), &PeersToPoll::All).await;
    let error_of = |wanted: &str| {
        found.iter().find_map(|report| match report {
            PeerReport::Failed { name, error } if name == wanted => Some(error.clone()),
            PeerReport::Failed { .. } | PeerReport::Status(_) | PeerReport::Alive(_) => None,
        })
    };
    assert_eq!(error_of("web_1").unwrap(), "the peer returned 403; hint: check that both have the same key");
    assert!(error_of("web_4").unwrap().to_lowercase().contains("refused"), "{found:?}");
}
