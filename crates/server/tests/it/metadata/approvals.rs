//! Approvals and their responses.

use std::time::Duration;

use forewarn_lifecycle::Command;
use forewarn_server::ClockCommand;

use crate::metadata::support::{
    NEWEST, SOLO, TestServer, WEB_0, WEB_1, approve, post, restarting, start_server,
};

async fn status_of_event(server: &TestServer) -> &'static str {
    let body = server.get(WEB_1, NEWEST).await.body;
    ["Scheduled", "Started"].into_iter().find(|status| body.contains(status)).unwrap_or("gone")
}

/// promise: T3
#[tokio::test]
async fn an_approval_is_answered_with_nothing_when_the_event_has_started() {
    let (server, id) = restarting().await;
    let answer = server.post(WEB_1, &approve(&[id])).await;
    assert_eq!(
        answer.plain_head(),
        "HTTP/1.1 200 OK\r\nServer: S\r\nContent-Length: 0\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"
    );
    assert_eq!(status_of_event(&server).await, "Started");
}

#[tokio::test]
async fn approving_again_is_harmless_until_an_hour_after_the_end() {
    let (server, id) = restarting().await;
    let again = approve(&[id.to_lowercase(), id.clone()]);
    for (advance_seconds, status, shown) in [
        (0, 200, "Started"),
        (0, 200, "Started"),
        (60, 200, "gone"),
        (3_500, 200, "gone"),
        (100, 400, "gone"),
    ] {
        server.control.drive(ClockCommand::Advance(Duration::from_secs(advance_seconds))).await.unwrap();
        assert_eq!(server.post(WEB_0, &again).await.status(), status);
        assert_eq!(status_of_event(&server).await, shown);
    }
}

/// promise: T3
#[tokio::test]
async fn one_unknown_id_spoils_the_whole_and_a_foreign_one_looks_alike() {
    let (server, id) = restarting().await;
    server.submit(Command::Restart(SOLO)).await;
    let foreign = server.ids("solo").remove(0);
    let unknown = "00000000-0000-0000-0000-000000000000".to_owned();
    let body = r#"{ "error": "Bad request: EventId does not name an event of this machine" }"#;
    for wrong in [foreign, unknown] {
        assert_eq!(server.post(WEB_0, &approve(&[id.clone(), wrong])).await.short(), (400, body));
    }
    assert_eq!(status_of_event(&server).await, "Scheduled");
}

#[tokio::test]
async fn a_body_that_is_no_start_request_is_told_what_is_wrong() {
    let server = start_server().await;
    let mut connection = server.connect(WEB_0).await;
    for (body, message) in [
        ("", "the body is empty"),
        ("{", "the body is not JSON, see line 1, column 1"),
        ("[]", "the body must be an object"),
        ("{}", "StartRequests is missing"),
        (r#"{"StartRequests":[]}"#, "StartRequests must not be empty"),
        (r#"{"StartRequests":{"EventId":"x"}}"#, "StartRequests must be a list"),
        (r#"{"StartRequests":[{"EventId":"x"}]}"#, "EventId is not a GUID"),
        (r#"{"StartRequests":[{"EventId":7}]}"#, "EventId must be a string"),
    ] {
        connection.send(&post(body)).await;
        let expected = format!(r#"{{ "error": "Bad request: {message}" }}"#);
        assert_eq!(connection.answer().await.short(), (400, expected.as_str()), "{body}");
    }
}

/// promise: T3, M2
#[tokio::test]
async fn content_type_edition_and_condition_of_an_approval_do_not_matter() {
    for (edition, fields) in [
        ("2017-03-01", ""),
        ("2019-08-01", "Metadata: true\r\nContent-Type: application/x-www-form-urlencoded\r\n"),
        ("2020-07-01", "Metadata: true\r\nContent-Type: text/plain\r\nIf-None-Match: *\r\n"),
        ("2017-08-01", "Metadata: true\r\nContent-Type: application/json\r\n"),
    ] {
        let (server, id) = restarting().await;
        let body = format!(
            r#"{{"DocumentIncarnation":null,"More":[1],"StartRequests":[{{"EventId":"{id}","X":1}}]}}"#
        );
        let request = format!(
            "POST /metadata/scheduledevents?api-version={edition} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(server.send_once(WEB_0, &request).await.short(), (200, ""), "{edition}");
        assert_eq!(status_of_event(&server).await, "Started");
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_a_body() {
    let (server, id) = restarting().await;
    let body = approve(&[id]);
    let (one, two) = body.split_at(10);
    let mut connection = server.connect(WEB_0).await;
    connection
        .send(&format!(
            "POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nTransfer-Encoding: Chunked\r\n\r\n\
         {:x}\r\n{one}\r\n{:X}\r\n{two}\r\n0\r\n\r\n{}",
            one.len(),
            two.len(),
            post("{}")
        ))
        .await;
    assert_eq!(connection.answer().await.short(), (200, ""));
    assert_eq!(connection.answer().await.status(), 400, "the next request begins where the chunks end");
}

/// promise: T3, M5
#[tokio::test]
async fn an_over_long_body_is_refused_before_it_is_read() {
    let server = start_server().await;
    let body = r#"{ "error": "Too large: a body has at most 131072 bytes" }"#;
    for framing in ["Content-Length: 131073\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n20001\r\n"] {
        let mut connection = server.connect(WEB_0).await;
        connection.send(&format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n{framing}")).await;
        let answer = connection.answer().await;
        assert_eq!(answer.short(), (413, body));
        assert_eq!(answer.header("Connection"), Some("close"));
        assert_eq!(connection.rest().await, "", "half-closed");
        // The server drains the rest.
        connection.send(&"x".repeat(10_000)).await;
    }
    let mut expecting = server.connect(WEB_0).await;
    let start = format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nExpect: 100-continue\r\n");
    expecting.send(&format!("{start}Content-Length: 131073\r\n\r\n")).await;
    assert_eq!(expecting.answer().await.status(), 413, "not 100");
}

#[tokio::test]
async fn as_many_ids_as_a_tenant_may_have_events_are_accepted_at_once() {
    let (server, id) = restarting().await;
    let many = approve(&vec![id; 2_000]);
    assert_eq!(server.post(WEB_0, &many).await.short(), (200, ""));
}
