//! Lifetime of connections.

use forewarn_lifecycle::Command;
use tokio::io::AsyncWriteExt;

use crate::metadata::support::{NEWEST, WEB_0, get, post, start_server};

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);

#[tokio::test]
async fn a_connection_is_kept_and_requests_may_be_sent_ahead() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&format!("{}\r\n{}{}", get(NEWEST), post("x"), get(NEWEST))).await;
    assert_eq!(connection.answer().await.short(), EMPTY);
    assert_eq!(connection.answer().await.status(), 400);
    let last = connection.answer().await;
    assert_eq!((last.short(), last.header("Connection")), (EMPTY, None));
}

#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    for byte in format!("{}{}", post("[]"), get(NEWEST)).bytes() {
        connection.send(&char::from(byte).to_string()).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(connection.answer().await.body, r#"{ "error": "Bad request: the body must be an object" }"#);
    assert_eq!(connection.answer().await.short(), EMPTY);
}

#[tokio::test]
async fn who_wants_to_close_is_told_the_same_and_closed() {
    let server = start_server().await;
    for fields in ["Connection: close\r\n", "connection: keep-alive, Close\r\n"] {
        let mut connection = server.connect(WEB_0).await;
        connection.send(&get(NEWEST).replace("\r\n\r\n", &format!("\r\n{fields}\r\n"))).await;
        let answer = connection.answer().await;
        assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
        assert_eq!(connection.rest().await, "");
    }
    let mut connection = server.connect(WEB_0).await;
    connection.send("GET /elsewhere HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert_eq!(connection.answer().await.header("Connection"), Some("close"), "refusals too");
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn the_old_protocol_works_without_a_host_and_closes() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&format!("GET {NEWEST} HTTP/1.0\r\nMetadata: true\r\n\r\n")).await;
    let answer = connection.answer().await;
    assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn who_sends_nothing_more_is_still_answered() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&get(NEWEST)).await;
    connection.0.shutdown().await.unwrap();
    assert_eq!(connection.answer().await.short(), EMPTY);
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn a_thousand_requests_are_enough_for_one_connection() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    for number in 1..=1_000 {
        connection.send(&get(NEWEST)).await;
        let expected = (number == 1_000).then_some("close");
        assert_eq!(connection.answer().await.header("Connection"), expected, "{number}");
    }
    assert_eq!(connection.rest().await, "");
}

#[tokio::test]
async fn patience_with_silence_heads_and_bodies_ends() {
    let server = start_server().await;
    server.enrol_all().await;
    let head = get(NEWEST);
    let body = post("x").replace("Content-Length: 1", "Content-Length: 9");
    for (start, seconds) in [("", 30), (&head[..20], 5), (body.as_str(), 5)] {
        let mut connection = server.connect(WEB_0).await;
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        connection.send(start).await;
        assert_eq!(connection.rest().await, "", "{start:?}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{start:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn many_callers_are_answered_side_by_side() {
    let server = start_server().await;
    let mut lines = Vec::new();
    for _ in 0..100 {
        let mut connection = server.connect(WEB_0).await;
        connection.send(&get(NEWEST)).await;
        lines.push(connection);
    }
    for mut connection in lines {
        assert_eq!(connection.answer().await.short(), EMPTY);
    }
}

#[tokio::test]
async fn who_sends_more_than_a_connection_takes_sees_every_answer_that_was_given() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&get(NEWEST).repeat(1_100)).await;
    let answers = connection.rest().await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1_000);
    assert!(answers.contains("Connection: close"), "the last one says that it is the last");
}

#[tokio::test]
async fn the_same_poll_over_one_connection_sees_what_is_new() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    for _ in 0..4 {
        connection.send(&get(NEWEST)).await;
        assert_eq!(connection.answer().await.short(), EMPTY);
    }
    server.submit(Command::Restart(WEB_0)).await;
    connection.send(&get(NEWEST)).await;
    assert!(connection.answer().await.body.contains("\"Scheduled\""));
    let known = get(NEWEST).replace("\r\n\r\n", "\r\nIf-None-Match: \"2\"\r\n\r\n");
    for _ in 0..3 {
        connection.send(&known).await;
        assert_eq!(connection.answer().await.status(), 304);
    }
    // The last request closes the connection.
    let last = get(NEWEST).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    connection.send(&last).await;
    let answer = connection.answer().await;
    assert_eq!((answer.status(), answer.header("Connection")), (200, Some("close")));
    assert_eq!(connection.rest().await, "");
}
