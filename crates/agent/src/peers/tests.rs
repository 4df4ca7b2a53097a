//! Asking peers: those that answer, those that hang, and those that lie.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_agent_core::{Asking, PeerReport, PeerWord, Stage, Standing};
use forewarn_client::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::PeerPlaces;
use super::{Asker, Key, Nonce, PeerAddresses, PeerNews, PeerPoller};
use crate::board::Shown;
use crate::status::{EndpointView, Status};
use crate::web;

fn key(byte: u8) -> Key {
    Key::new(&[byte; 40]).unwrap()
}

fn word(name: &str) -> PeerWord {
    let standing = Standing { stage: Stage::Ready, approved: true };
    PeerWord { name: name.to_owned(), events: [("28512AF7".to_owned(), standing)].into() }
}

/// An agent that says that; where it is.
async fn agent(word: PeerWord, key: Key) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let status = Arc::new(Status::new(EndpointView::default()));
        let (_board, shown) = watch::channel(Arc::new(Shown { ready: true, drained: false, word, status }));
        let (_stop, stopped) = watch::channel(false);
        web::serve(listener, shown, String::new, Some(key), PeerAddresses::default(), stopped).await;
    });
    place
}

/// Somebody who makes an answer of the nonce; none: never.
async fn somebody(answer: impl Fn(Nonce) -> Option<String> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
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
            match answer(Nonce::parse(nonce).unwrap()) {
                Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap_or_default(),
                None => drop(tokio::spawn(async move {
                    let _kept = stream;
                    std::future::pending::<()>().await;
                })),
            }
        }
    });
    place
}

fn proved(key: &Key, nonce: &Nonce, body: &str) -> String {
    let proof = key.prove_word(nonce, body.as_bytes());
    format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\nForewarn-Proof: {proof}\r\n\r\n{body}", body.len())
}

fn asker(places: &[(&str, &str)]) -> Asker {
    let list: BTreeMap<_, _> =
        places.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect();
    Asker::new(PeerPlaces::List(list), key(1), "web_0", nowhere(), PeerAddresses::default())
}

/// Everything that peers answer in one round.
async fn reports(asker: &Asker, asking: &Asking) -> Vec<PeerReport> {
    let mut poller = PeerPoller::default();
    poller.set_asker(Some(asker.clone()));
    poller.ask(asking);
    let mut reports = Vec::new();
    while let PeerNews::Report(report) = poller.next().await {
        reports.push(report);
    }
    reports
}

async fn round(asker: &Asker, asking: &Asking) -> Vec<PeerWord> {
    let word = |report| match report {
        PeerReport::Word(word) => Some(word),
        PeerReport::Alive(_) => None,
    };
    reports(asker, asking).await.into_iter().filter_map(word).collect()
}

fn nowhere() -> Endpoint {
    Endpoint::parse("http://127.0.0.1:9").unwrap()
}

#[tokio::test]
async fn one_that_hangs_and_one_that_is_gone_do_not_keep_the_others_from_being_heard() {
    let one = agent(word("web_1"), key(1)).await;
    let hangs = somebody(|_| None).await;
    let other = agent(word("web_3"), key(1)).await;
    let asker = asker(&[
        ("web_0", &one),
        ("web_1", &one),
        ("web_2", &hangs),
        ("web_3", &other),
        ("web_4", "127.0.0.1:9"),
        ("web_5", "nobody.invalid:9"),
    ]);
    let begin = Instant::now();
    let mut words = round(&asker, &Asking::Everybody).await;
    words.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(words, [word("web_1"), word("web_3")]);
    assert!(begin.elapsed() >= Duration::from_secs(2), "the one that hangs was given its time");
    let these = Asking::These(vec!["web_3".to_owned()]);
    assert_eq!(round(&asker, &these).await, [word("web_3")]);
}

#[tokio::test]
async fn who_has_another_key_neither_hears_nor_is_heard() {
    let stranger = agent(word("web_1"), key(2)).await;
    assert_eq!(round(&asker(&[("web_1", &stranger)]), &Asking::Everybody).await, []);
    let body = serde_json::to_string(&word("web_1")).unwrap();
    let forger = somebody(move |nonce| Some(proved(&key(2), &nonce, &body))).await;
    assert_eq!(round(&asker(&[("web_1", &forger)]), &Asking::Everybody).await, []);
}

#[tokio::test]
async fn an_answer_to_another_question_is_none() {
    let body = serde_json::to_string(&word("web_1")).unwrap();
    // What a stranger has heard before, and says again.
    let old = Nonce::fresh().unwrap();
    let said = proved(&key(1), &old, &body);
    let repeats = somebody(move |_| Some(said.clone())).await;
    assert_eq!(round(&asker(&[("web_1", &repeats)]), &Asking::Everybody).await, []);
    let body = serde_json::to_string(&word("web_1")).unwrap();
    let honest = somebody(move |nonce| Some(proved(&key(1), &nonce, &body))).await;
    assert_eq!(round(&asker(&[("web_1", &honest)]), &Asking::Everybody).await, [word("web_1")]);
}

#[tokio::test]
async fn what_was_changed_on_the_way_or_has_no_proof_or_no_form_is_not_heard() {
    let body = serde_json::to_string(&word("web_1")).unwrap();
    let changed = body.clone();
    let changes =
        somebody(move |nonce| Some(proved(&key(1), &nonce, &changed).replace("\"ready\"", "\"idle\" ")))
            .await;
    let bare =
        somebody(move |_| Some(format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n{body}", body.len())))
            .await;
    let odd = somebody(|nonce| Some(proved(&key(1), &nonce, "{\"name\":\"\",\"events\":{}}"))).await;
    let long =
        somebody(|nonce| Some(proved(&key(1), &nonce, &format!("\"{}\"", "x".repeat(300 * 1024))))).await;
    let moved =
        somebody(|_| Some("HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned())).await;
    for place in [changes, bare, odd, long, moved] {
        assert_eq!(round(&asker(&[("web_1", &place)]), &Asking::Everybody).await, []);
    }
}

#[tokio::test]
async fn a_machine_speaks_for_itself_only_and_nobody_hears_himself() {
    let other = agent(word("web_2"), key(1)).await;
    assert_eq!(round(&asker(&[("web_1", &other)]), &Asking::Everybody).await, [], "it has another name");
    let oneself = agent(word("web_0"), key(1)).await;
    let by_dns = |place: &str| {
        Asker::new(PeerPlaces::Dns(place.to_owned()), key(1), "web_0", nowhere(), PeerAddresses::default())
    };
    assert_eq!(round(&by_dns(&oneself), &Asking::Everybody).await, []);
    assert_eq!(round(&by_dns(&other), &Asking::Everybody).await, [word("web_2")], "a name is learnt");
}

#[tokio::test]
async fn a_peer_that_hangs_does_not_delay_the_words_of_the_others() {
    let one = agent(word("web_1"), key(1)).await;
    let hangs = somebody(|_| None).await;
    let mut poller = PeerPoller::default();
    poller.set_asker(Some(asker(&[("web_1", &one), ("web_2", &hangs)])));
    let (begin, mut heard) = (Instant::now(), 0);
    // The question to the one that hangs takes two seconds: the other is asked, and heard, more than once meanwhile.
    loop {
        poller.ask(&Asking::Everybody);
        let due = poller.due_in();
        tokio::select! {
            news = poller.next() => match news {
                PeerNews::Report(report) => {
                    assert_eq!(report, PeerReport::Word(word("web_1")));
                    heard += 1;
                }
                PeerNews::RoundOver { .. } => break,
            },
            () = tokio::time::sleep(due) => {}
        }
    }
    assert!(begin.elapsed() >= Duration::from_secs(2), "the one that hangs was given its time");
    assert!(heard >= 2, "heard {heard} times");
}

#[tokio::test]
async fn an_agent_that_has_no_time_is_alive() {
    let busy = || somebody(|_| Some("HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\nbusy\n".to_owned()));
    let alive = [PeerReport::Alive("web_1".to_owned())];
    let place = busy().await;
    assert_eq!(reports(&asker(&[("web_1", &place)]), &Asking::Everybody).await, alive);
    // Of a peer that was found by DNS, the name is known once it has answered.
    let body = serde_json::to_string(&word("web_1")).unwrap();
    let answers = std::sync::atomic::AtomicUsize::new(0);
    let place = somebody(move |nonce| match answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 | 2 => Some("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n".to_owned()),
        _ => Some(proved(&key(1), &nonce, &body)),
    })
    .await;
    let asker = Asker::new(PeerPlaces::Dns(place), key(1), "web_0", nowhere(), PeerAddresses::default());
    assert_eq!(reports(&asker, &Asking::Everybody).await, [], "nobody knows who that is");
    assert_eq!(reports(&asker, &Asking::Everybody).await, [PeerReport::Word(word("web_1"))]);
    assert_eq!(reports(&asker, &Asking::Everybody).await, alive);
}

#[tokio::test]
async fn a_peer_that_says_something_else_is_alive() {
    let alive = [PeerReport::Alive("web_1".to_owned())];
    // A later version may have other stages, and a word may be too long.
    let later = r#"{"name":"web_1","events":{"28512AF7":{"stage":"resting","approved":false}}}"#;
    let strange = somebody(|nonce| Some(proved(&key(1), &nonce, later))).await;
    assert_eq!(reports(&asker(&[("web_1", &strange)]), &Asking::Everybody).await, alive);
    let long =
        somebody(|nonce| Some(proved(&key(1), &nonce, &format!("\"{}\"", "x".repeat(300 * 1024))))).await;
    assert_eq!(reports(&asker(&[("web_1", &long)]), &Asking::Everybody).await, alive);
}
