//! How connections live and end.

use forewarn_lifecycle::Command;
use tokio::io::AsyncWriteExt;

use crate::support::{NEWEST, WEB_0, get, post, world};

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);

#[tokio::test]
async fn a_connection_is_kept_and_requests_may_be_sent_ahead() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    line.send(&format!("{}\r\n{}{}", get(NEWEST), post("x"), get(NEWEST))).await;
    assert_eq!(line.answer().await.short(), EMPTY);
    assert_eq!(line.answer().await.status(), 400);
    let last = line.answer().await;
    assert_eq!((last.short(), last.header("Connection")), (EMPTY, None));
}

#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    for byte in format!("{}{}", post("[]"), get(NEWEST)).bytes() {
        line.send(&char::from(byte).to_string()).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(line.answer().await.body, r#"{ "error": "Bad request: the body must be an object" }"#);
    assert_eq!(line.answer().await.short(), EMPTY);
}

#[tokio::test]
async fn who_wants_to_close_is_told_the_same_and_closed() {
    let world = world().await;
    for fields in ["Connection: close\r\n", "connection: keep-alive, Close\r\n"] {
        let mut line = world.connect(WEB_0).await;
        line.send(&get(NEWEST).replace("\r\n\r\n", &format!("\r\n{fields}\r\n"))).await;
        let answer = line.answer().await;
        assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
        assert_eq!(line.rest().await, "");
    }
    let mut line = world.connect(WEB_0).await;
    line.send("GET /elsewhere HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert_eq!(line.answer().await.header("Connection"), Some("close"), "refusals too");
    assert_eq!(line.rest().await, "");
}

#[tokio::test]
async fn the_old_protocol_works_without_a_host_and_closes() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    line.send(&format!("GET {NEWEST} HTTP/1.0\r\nMetadata: true\r\n\r\n")).await;
    let answer = line.answer().await;
    assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
    assert_eq!(line.rest().await, "");
}

#[tokio::test]
async fn who_sends_nothing_more_is_still_answered() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    line.send(&get(NEWEST)).await;
    line.0.shutdown().await.unwrap();
    assert_eq!(line.answer().await.short(), EMPTY);
    assert_eq!(line.rest().await, "");
}

#[tokio::test]
async fn a_thousand_requests_are_enough_for_one_connection() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    for number in 1..=1_000 {
        line.send(&get(NEWEST)).await;
        let expected = (number == 1_000).then_some("close");
        assert_eq!(line.answer().await.header("Connection"), expected, "{number}");
    }
    assert_eq!(line.rest().await, "");
}

#[tokio::test]
async fn patience_with_silence_heads_and_bodies_ends() {
    let world = world().await;
    world.enrol_all().await;
    let head = get(NEWEST);
    let body = post("x").replace("Content-Length: 1", "Content-Length: 9");
    for (start, seconds) in [("", 30), (&head[..20], 5), (body.as_str(), 5)] {
        let mut line = world.connect(WEB_0).await;
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        line.send(start).await;
        assert_eq!(line.rest().await, "", "{start:?}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{start:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn many_callers_are_answered_side_by_side() {
    let world = world().await;
    let mut lines = Vec::new();
    for _ in 0..100 {
        let mut line = world.connect(WEB_0).await;
        line.send(&get(NEWEST)).await;
        lines.push(line);
    }
    for mut line in lines {
        assert_eq!(line.answer().await.short(), EMPTY);
    }
}

#[tokio::test]
async fn who_sends_more_than_a_connection_takes_sees_every_answer_that_was_given() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    line.send(&get(NEWEST).repeat(1_100)).await;
    let answers = line.rest().await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1_000);
    assert!(answers.contains("Connection: close"), "the last one says that it is the last");
}

#[tokio::test]
async fn the_same_poll_over_one_connection_sees_what_is_new() {
    let world = world().await;
    let mut line = world.connect(WEB_0).await;
    for _ in 0..4 {
        line.send(&get(NEWEST)).await;
        assert_eq!(line.answer().await.short(), EMPTY);
    }
    world.submit(Command::Restart(WEB_0)).await;
    line.send(&get(NEWEST)).await;
    assert!(line.answer().await.body.contains("\"Scheduled\""));
    let known = get(NEWEST).replace("\r\n\r\n", "\r\nIf-None-Match: \"2\"\r\n\r\n");
    for _ in 0..3 {
        line.send(&known).await;
        assert_eq!(line.answer().await.status(), 304);
    }
    // The last one asks to be the last, to the letter or not.
    let last = get(NEWEST).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    line.send(&last).await;
    let answer = line.answer().await;
    assert_eq!((answer.status(), answer.header("Connection")), (200, Some("close")));
    assert_eq!(line.rest().await, "");
}
