//! Hostile machines: delayed rejections, connection limits, and their counters.

use std::net::Ipv4Addr;
use std::time::Duration;

use forewarn_metadata::{ConnectionLimits, Limits, Rate, Settings};
use tokio::time::Instant;

use crate::metadata::support::{
    NEWEST, TestServer, WEB_0, WEB_1, address, by_address, get, post, start_server, start_server_with,
};

const DELAYED: &str = "forewarn_metadata_refusals_delayed_total";

/// Three rejections at once, then one per second.
fn strict() -> Settings {
    let limits = Limits {
        rate: Rate { per_second: 1_000_000, burst: 1_000_000 },
        errors: Rate { per_second: 1, burst: 3 },
        error_delay: Duration::from_secs(7),
        ..Limits::default()
    };
    Settings { limits: Some(limits), ..Settings::default() }
}

/// Status of a response, and its delay in seconds. Real time stands still: only delays count.
async fn ask(server: &TestServer, machine: forewarn_lifecycle::MachineId, bytes: &str) -> (u16, u64) {
    let mut connection = server.connect(machine).await;
    tokio::time::pause();
    let begin = Instant::now();
    connection.send(bytes).await;
    let status = connection.answer().await.status();
    let seconds = begin.elapsed().as_secs();
    tokio::time::resume();
    (status, seconds)
}

fn ended(limit: &str) -> String {
    format!("forewarn_metadata_connections_ended_total{{limit=\"{limit}\"}}")
}

/// promise: M4
#[tokio::test]
async fn who_is_refused_again_and_again_is_refused_late_and_the_others_are_not() {
    let server = start_server_with(strict(), by_address()).await;
    server.enrol_all().await;
    let wrong = [get("/elsewhere"), "nonsense\r\n\r\n".to_owned(), post("x")];
    let codes = [404, 400, 400];
    for (bytes, code) in wrong.iter().zip(codes) {
        assert_eq!(ask(&server, WEB_0, bytes).await, (code, 0), "{bytes}");
    }
    assert_eq!(server.count(DELAYED), 0);
    for (bytes, code) in wrong.iter().zip(codes) {
        assert_eq!(ask(&server, WEB_0, bytes).await, (code, 7), "{bytes}");
    }
    assert_eq!(server.count(DELAYED), 3);
    assert_eq!(ask(&server, WEB_0, &get(NEWEST)).await, (200, 0), "what is right is answered at once");
    assert_eq!(ask(&server, WEB_1, &wrong[0]).await, (404, 0), "another machine");
}

/// promise: M4
#[tokio::test]
async fn all_strangers_together_have_what_one_machine_may_have() {
    let server = start_server_with(strict(), by_address()).await;
    server.enrol_all().await;
    let stranger = |number| Ipv4Addr::new(127, 0, 9, number);
    let mut lines = Vec::new();
    for number in 0..16 {
        let mut connection = server.connect_from(stranger(number)).await;
        if number < 3 {
            connection.send(&get(NEWEST)).await;
            assert_eq!(connection.answer().await.status(), 403);
        }
        lines.push(connection);
    }
    assert!(server.refuses(stranger(99)).await, "one more is closed");
    assert_eq!(server.count("forewarn_metadata_connections_refused_total{reason=\"machine\"}"), 1);
    tokio::time::pause();
    let begin = Instant::now();
    lines[9].send(&get(NEWEST)).await;
    assert_eq!((lines[9].answer().await.status(), begin.elapsed().as_secs()), (403, 7), "and waits");
    tokio::time::resume();
    assert_eq!(ask(&server, WEB_0, &get(NEWEST)).await, (200, 0), "a machine does not");
}

/// promise: M4
#[tokio::test]
async fn without_limits_no_refusal_is_late() {
    let server = start_server().await;
    for _ in 0..50 {
        assert_eq!(ask(&server, WEB_0, &get("/elsewhere")).await, (404, 0));
    }
    assert_eq!(server.count(DELAYED), 0);
}

/// promise: M4
#[tokio::test]
async fn a_front_has_a_number_of_connections_and_no_more() {
    let connections = ConnectionLimits { max: 2, ..ConnectionLimits::default() };
    let server = start_server_with(Settings { connections, ..Settings::default() }, by_address()).await;
    let mut lines = [server.connect(WEB_0).await, server.connect(WEB_1).await];
    for connection in &mut lines {
        connection.send(&get(NEWEST)).await;
        assert_eq!(connection.answer().await.status(), 200);
    }
    assert!(server.refuses(address(WEB_0)).await);
    assert_eq!(server.count("forewarn_metadata_connections_refused_total{reason=\"full\"}"), 1);
}

/// promise: M4
#[tokio::test]
async fn limits_of_a_connection_are_as_set_and_each_is_counted() {
    let seconds = Duration::from_secs;
    let connections = ConnectionLimits {
        idle: seconds(11),
        head: seconds(12),
        body: seconds(13),
        requests: 2,
        ..ConnectionLimits::default()
    };
    let server = start_server_with(Settings { connections, ..Settings::default() }, by_address()).await;
    server.enrol_all().await;
    let head = get(NEWEST);
    let body = post("x").replace("Content-Length: 1", "Content-Length: 9");
    for (start, limit, time) in [("", "idle", 11), (&head[..20], "head", 12), (body.as_str(), "body", 13)] {
        let mut connection = server.connect(WEB_0).await;
        tokio::time::pause();
        let begin = Instant::now();
        connection.send(start).await;
        assert_eq!((connection.rest().await.as_str(), begin.elapsed().as_secs()), ("", time), "{limit}");
        tokio::time::resume();
        assert_eq!(server.count(&ended(limit)), 1, "{limit}");
    }
    let mut connection = server.connect(WEB_0).await;
    for last in [None, Some("close")] {
        connection.send(&head).await;
        assert_eq!(connection.answer().await.header("Connection"), last);
    }
    assert_eq!(server.count(&ended("requests")), 1);
}

/// promise: M4
#[tokio::test]
async fn a_connection_that_is_old_is_closed_after_its_next_answer() {
    let connections = ConnectionLimits { life: Duration::from_secs(20), ..ConnectionLimits::default() };
    let server = start_server_with(Settings { connections, ..Settings::default() }, by_address()).await;
    server.enrol_all().await;
    let mut connection = server.connect(WEB_0).await;
    connection.send(&get(NEWEST)).await;
    assert_eq!(connection.answer().await.header("Connection"), None);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(21)).await;
    // It was below the age limit when the wait began.
    for last in [None, Some("close")] {
        connection.send(&get(NEWEST)).await;
        assert_eq!(connection.answer().await.header("Connection"), last);
    }
    assert_eq!(server.count(&ended("life")), 1);
}

/// promise: M4
#[tokio::test]
async fn who_does_not_read_its_answers_is_given_up() {
    let connections = ConnectionLimits { requests: u32::MAX, ..ConnectionLimits::default() };
    let server = start_server_with(Settings { connections, ..Settings::default() }, by_address()).await;
    server.enrol_all().await;
    let mut connection = server.connect(WEB_0).await;
    let many = get("/metadata/instance?api-version=2021-02-01").repeat(100_000);
    // Responses pile up until neither side takes more.
    let sending = connection.send(&many);
    drop(tokio::time::timeout(Duration::from_secs(1), sending).await);
    tokio::time::pause();
    for _ in 0..200 {
        if server.count(&ended("write")) == 1 {
            return;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    panic!("{}", server.telemetry.encode());
}
