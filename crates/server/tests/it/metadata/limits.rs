//! Limits per machine.

use forewarn_lifecycle::{Command, MachineId};
use forewarn_metadata::{Identity, Limits, Rate, Settings};

use crate::metadata::support::{
    Connection, NEWEST, SOLO, TestServer, WEB_0, WEB_1, by_address, get, start_server, start_server_with,
};

/// Everything is limited but the rate.
fn settings() -> Settings {
    let rate = Rate { per_second: 1_000_000, burst: 1_000_000 };
    Settings { limits: Some(Limits { rate, ..Limits::default() }), ..Settings::default() }
}

async fn limited() -> TestServer {
    let server = start_server_with(settings(), by_address()).await;
    server.enrol_all().await;
    server
}

const VERSIONS: &str = "/metadata/versions";

async fn is_open(connection: &mut Connection) -> bool {
    // The connection may have been reset already.
    drop(tokio::io::AsyncWriteExt::write_all(&mut connection.0, get(VERSIONS).as_bytes()).await);
    let mut first = [0];
    let read = tokio::io::AsyncReadExt::read(&mut connection.0, &mut first).await;
    read.is_ok_and(|bytes| bytes == 1)
}

async fn waiting(server: &TestServer, machine: MachineId) -> Connection {
    let mut connection = server.connect(machine).await;
    connection.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    connection
}

async fn until(server: &TestServer, name: &str, count: u64) {
    while server.count(name) != count {
        tokio::task::yield_now().await;
    }
}

/// promise: M4
#[tokio::test]
async fn a_machine_has_sixteen_connections_and_no_more() {
    let server = limited().await;
    let mut lines = Vec::new();
    for _ in 0..16 {
        let mut connection = server.connect(WEB_0).await;
        assert!(is_open(&mut connection).await);
        lines.push(connection);
    }
    assert!(!is_open(&mut server.connect(WEB_0).await).await);
    assert_eq!(server.count("forewarn_metadata_connections_refused_total{reason=\"machine\"}"), 1);
    assert!(is_open(&mut server.connect(WEB_1).await).await, "another machine");
    lines.pop();
    until(&server, "forewarn_metadata_connections_open", 15).await;
    assert!(is_open(&mut server.connect(WEB_0).await).await, "one has gone");
}

/// promise: M4
#[tokio::test]
async fn four_requests_of_a_machine_may_wait_for_news() {
    let server = limited().await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(waiting(&server, WEB_0).await);
    }
    until(&server, "forewarn_metadata_waiting_requests", 4).await;
    let answer = waiting(&server, WEB_0).await.answer().await;
    assert_eq!(answer.short(), (429, r#"{ "error": "Too many requests" }"#));
    assert_eq!((answer.header("Retry-After"), answer.header("Connection")), (Some("1"), None));
    assert_eq!(server.count("forewarn_metadata_limited_total{limit=\"waiting\"}"), 1);
    let news = get(&format!("{NEWEST}&wait=60s&incarnation=7"));
    assert_eq!(server.send_once(WEB_0, &news).await.status(), 200, "there is nothing to wait for");
    lines.push(waiting(&server, WEB_1).await);
    lines.push(waiting(&server, SOLO).await);
    drop(lines.remove(0));
    until(&server, "forewarn_metadata_waiting_requests", 5).await;
    lines.push(waiting(&server, WEB_0).await);
    until(&server, "forewarn_metadata_waiting_requests", 6).await;
    server.submit(Command::Restart(WEB_0)).await;
    assert_eq!(lines[0].answer().await.header("ETag"), Some("\"2\""));
}

/// promise: M4
#[tokio::test]
async fn eight_requests_of_a_machine_may_be_under_way() {
    let server = limited().await;
    let mut lines = Vec::new();
    for _ in 0..8 {
        let mut connection = server.connect(WEB_0).await;
        // The body is missing: the request stays open.
        connection.send(&format!(
            "POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        ))
        .await;
        assert_eq!(connection.answer().await.status(), 100);
        lines.push(connection);
    }
    let answer = server.get(WEB_0, VERSIONS).await;
    assert_eq!((answer.status(), answer.header("Retry-After")), (429, Some("1")));
    assert_eq!(server.count("forewarn_metadata_limited_total{limit=\"in_flight\"}"), 1);
    assert_eq!(server.get(WEB_1, VERSIONS).await.status(), 200, "another machine");
    drop(lines.pop());
    until(&server, "forewarn_metadata_connections_open", 7).await;
    assert_eq!(server.get(WEB_0, VERSIONS).await.status(), 200);
}

#[tokio::test]
async fn without_limits_a_machine_has_as_much_as_it_likes() {
    let server = start_server().await;
    server.enrol_all().await;
    let mut lines = Vec::new();
    for _ in 0..40 {
        lines.push(waiting(&server, WEB_0).await);
    }
    until(&server, "forewarn_metadata_waiting_requests", 40).await;
    assert_eq!(server.get(WEB_0, VERSIONS).await.status(), 200);
}

#[tokio::test]
async fn where_only_a_path_names_the_caller_connections_are_not_counted() {
    let server = start_server_with(settings(), Identity::Prefix { default: None }).await;
    let mut lines = Vec::new();
    for _ in 0..20 {
        lines.push(server.connect(WEB_0).await);
    }
    let last = lines.last_mut().unwrap();
    last.send(&get(&format!("/vm/web_0{NEWEST}"))).await;
    assert_eq!(last.answer().await.status(), 200);
}
