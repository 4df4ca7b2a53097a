//! Documents, conditional requests and long polls.

use std::time::Duration;

use forewarn_lifecycle::Command;
use forewarn_server::ClockCommand;

use crate::metadata::support::{NEWEST, SOLO, SPOT, WEB_0, WEB_1, get, start_server};

/// promise: M1
#[tokio::test]
async fn an_answer_is_these_bytes() {
    let server = start_server().await;
    let answer = server.get(WEB_0, NEWEST).await;
    assert_eq!(
        answer.plain_head(),
        "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 37\r\nServer: S\r\n\
         ETag: \"1\"\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"
    );
    assert_eq!(answer.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
    assert!(
        answer
            .header("Server")
            .is_some_and(|server| server.starts_with("forewarn/") && server.ends_with("IMDS"))
    );
}

#[tokio::test]
async fn every_edition_shows_the_fields_it_knows() {
    let server = start_server().await;
    server.enrol_all().await;
    server.submit(Command::Restart(WEB_0)).await;
    let id = server.ids("web/web_0").remove(0);
    let description =
        r#","Description":"Virtual machine is going to be restarted as requested by authorized user.""#;
    let (source, duration) = (r#","EventSource":"User""#, r#","DurationInSeconds":-1"#);
    for (edition, underline, more) in [
        ("2017-03-01", "_", String::new()),
        ("2017-08-01", "", String::new()),
        ("2017-11-01", "", String::new()),
        ("2019-01-01", "", String::new()),
        ("2019-04-01", "", description.to_owned()),
        ("2019-08-01", "", format!("{description}{source}")),
        ("2020-07-01", "", format!("{description}{source}{duration}")),
    ] {
        let target = format!("/metadata/scheduledevents?api-version={edition}");
        let body = format!(
            r#"{{"DocumentIncarnation":2,"Events":[{{"EventId":"{id}","EventStatus":"Scheduled","EventType":"Reboot","#
        ) + &format!(
            r#""ResourceType":"VirtualMachine","Resources":["{underline}web_0"],"NotBefore":"Thu, 01 Jan 2026 00:15:00 GMT"{more}}}]}}"#
        );
        assert_eq!(server.get(WEB_1, &target).await.short(), (200, body.as_str()), "{edition}");
    }
    let other = server.get(SOLO, NEWEST).await;
    assert_eq!(other.body, r#"{"DocumentIncarnation":1,"Events":[]}"#, "another tenant");
}

#[tokio::test]
async fn older_editions_leave_out_the_kinds_they_do_not_know() {
    let server = start_server().await;
    server.enrol_all().await;
    server.submit(Command::Delete(SOLO)).await;
    server.submit(Command::Evict(SPOT)).await;
    for (machine, kind, first) in [(SOLO, "Terminate", "2019-01-01"), (SPOT, "Preempt", "2017-11-01")] {
        for edition in ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2020-07-01"] {
            let answer =
                server.get(machine, &format!("/metadata/scheduledevents?api-version={edition}")).await;
            assert_eq!(answer.header("ETag"), Some("\"2\""));
            assert_eq!(answer.body.contains(kind), edition >= first, "{kind} in {edition}");
        }
    }
}

#[tokio::test]
async fn an_event_goes_from_scheduled_to_started_to_gone_and_counts() {
    let server = start_server().await;
    server.enrol_all().await;
    server.submit(Command::Restart(WEB_0)).await;
    let id = server.ids("web/web_0").remove(0);
    server.control.drive(ClockCommand::Advance(Duration::from_mins(15))).await.unwrap();
    let started = server.get(WEB_0, NEWEST).await;
    assert_eq!(started.header("Date"), Some("Thu, 01 Jan 2026 00:15:00 GMT"));
    assert_eq!(started.header("ETag"), Some("\"3\""));
    let start = format!(r#"{{"DocumentIncarnation":3,"Events":[{{"EventId":"{id}","EventStatus":"Started","#);
    assert!(
        started.body.starts_with(&start) && started.body.contains(r#""NotBefore":"","#),
        "{}",
        started.body
    );
    server.control.drive(ClockCommand::Advance(Duration::from_mins(1))).await.unwrap();
    assert_eq!(server.get(WEB_0, NEWEST).await.body, r#"{"DocumentIncarnation":4,"Events":[]}"#);
}

/// promise: M1
#[tokio::test]
async fn who_has_the_document_already_is_told_so_without_it() {
    let server = start_server().await;
    let asking = |tag: &str| get(NEWEST).replace("\r\n\r\n", &format!("\r\nIf-None-Match: {tag}\r\n\r\n"));
    let mut connection = server.connect(WEB_0).await;
    for tag in ["\"1\"", "1", "W/\"1\"", "\"0\", \"1\"", "*"] {
        connection.send(&asking(tag)).await;
        assert_eq!(
            connection.answer().await.plain_head(),
            "HTTP/1.1 304 Not Modified\r\nServer: S\r\nETag: \"1\"\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
            "{tag}"
        );
    }
    for tag in ["0", "\"2\"", "\"11\"", "nonsense"] {
        connection.send(&asking(tag)).await;
        assert_eq!(connection.answer().await.status(), 200, "{tag}");
    }
}

/// promise: M1
#[tokio::test]
async fn a_caller_may_wait_for_news() {
    let server = start_server().await;
    server.enrol_all().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&get(&format!("{NEWEST}&wait=60s&incarnation=7"))).await;
    assert_eq!(connection.answer().await.header("ETag"), Some("\"1\""), "it is another one already");
    connection.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    // The request may arrive before or after the change: its response shows it either way.
    server.submit(Command::Restart(WEB_0)).await;
    assert_eq!(connection.answer().await.header("ETag"), Some("\"2\""));
    connection.send(&get(&format!("{NEWEST}&wait=0s&incarnation=2"))).await;
    assert_eq!(connection.answer().await.header("ETag"), Some("\"2\""), "there are none");
    for query in ["wait=61s&incarnation=1", "wait=30&incarnation=1", "wait=1s", "wait=1s&incarnation=x"] {
        connection.send(&get(&format!("{NEWEST}&{query}"))).await;
        let body = r#"{ "error": "Bad request: wait must be like 30s, at most 60s, and incarnation must be a number" }"#;
        assert_eq!(connection.answer().await.short(), (400, body), "{query}");
    }
}

#[tokio::test]
async fn waiting_ends() {
    let server = start_server().await;
    server.enrol_all().await;
    let mut connection = server.connect(WEB_0).await;
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    connection.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    assert_eq!(connection.answer().await.header("ETag"), Some("\"1\""));
    assert_eq!(start.elapsed().as_secs(), 60);
}
