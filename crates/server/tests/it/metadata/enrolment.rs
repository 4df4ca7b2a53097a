//! The first request of a tenant.

use std::time::Duration;

use forewarn_metadata::{FirstAnswer, Settings};

use crate::metadata::support::{
    NEWEST, TestServer, WEB_0, WEB_1, by_address, get, post, start_server, start_server_with,
};

fn is_enrolled(server: &TestServer) -> bool {
    server.caller("web/web_0").slot.read().is_enrolled()
}

async fn server_answering(first_answer: FirstAnswer) -> TestServer {
    start_server_with(Settings { first_answer, ..Settings::default() }, by_address()).await
}

/// promise: T2
#[tokio::test]
async fn the_first_valid_request_of_any_machine_enrols_its_tenant_and_no_other() {
    for request in [
        get(NEWEST),
        get("/metadata/scheduledevents?api-version=2017-03-01"),
        post("not even JSON"),
        format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nContent-Length: 999999\r\n\r\n"),
    ] {
        let server = start_server().await;
        assert!(!is_enrolled(&server));
        server.send_once(WEB_1, &request).await;
        assert!(is_enrolled(&server), "{request}");
        assert!(!server.caller("solo").slot.read().is_enrolled());
    }
}

/// promise: T2
#[tokio::test]
async fn a_refused_request_and_instance_metadata_enrol_nobody() {
    let server = start_server().await;
    for request in [
        get("/metadata/instance?api-version=2021-02-01"),
        get("/metadata/versions"),
        get("/metadata/forewarn/members?api-version=2020-07-01"),
        get("/metadata/scheduledevents?api-version=latest"),
        get(NEWEST).replace("Metadata", "Other"),
        get(NEWEST).replace("GET", "PUT"),
        get(NEWEST).replace("GET", "HEAD"),
        get(&format!("{NEWEST}&a=1&a=1")),
        get(&format!("{NEWEST}&wait=x")),
    ] {
        server.send_once(WEB_0, &request).await;
        assert!(!is_enrolled(&server), "{request}");
    }
}

#[tokio::test]
async fn the_first_answer_may_be_empty() {
    let server = server_answering(FirstAnswer::Empty).await;
    let answer = server.get(WEB_0, NEWEST).await;
    assert_eq!(answer.short(), (200, ""));
    assert_eq!(answer.header("Content-Length"), Some("0"));
    assert!(is_enrolled(&server));
    assert_eq!(server.get(WEB_0, NEWEST).await.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
}

#[tokio::test]
async fn the_first_answer_may_take_two_minutes_and_enrols_even_if_nobody_waits() {
    let server = server_answering(FirstAnswer::Delay(Duration::from_mins(2))).await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&get(NEWEST)).await;
    drop(connection);
    while !is_enrolled(&server) {
        tokio::task::yield_now().await;
    }
    let server = server_answering(FirstAnswer::Delay(Duration::from_mins(2))).await;
    let mut connection = server.connect(WEB_0).await;
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    connection.send(&get(NEWEST)).await;
    assert_eq!(connection.answer().await.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
    assert_eq!(start.elapsed().as_secs(), 120);
}
