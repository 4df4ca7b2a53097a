//! Slow clients: each listener answers operators while they hold their connections.

use std::io::{BufRead, BufReader, Write};

use crate::pressure::attack::{INCOMPLETE, answer, ask, connect, hold, hold_socket, metric, request, status};
use crate::pressure::place::Place;
use forewarn_testkit::tls::TlsClient;
use forewarn_testkit::wait_until;

/// More connections than a listener has by default.
const MANY: usize = 1_600;

/// Limits that a few hundred connections reach, and times that none of these tests waits for.
const NARROW: &str =
    "{ max = 40, per_address = 16, head = '10m', body = '10m', idle = '10m', handshake = '10m' }";

/// promise: S5
#[test]
fn slow_headers_do_not_lock_operators_out() {
    let place = Place::new();
    let server = place.start("");
    let token = place.token();
    let held = hold(server.api(), MANY, INCOMPLETE.as_bytes());
    assert_eq!(ask(server.api(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    let listed = place.run(&["host", "ls"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    // The oldest had to make room, and was told so.
    let (head, body) = answer(&mut &held[0]).unwrap();
    assert_eq!(status(&head), 503, "{head}");
    assert!(head.contains("\r\nretry-after: 1\r\n") && body.contains("/problems/busy"), "{head}{body}");
    let dropped =
        metric(server.api(), &token, "forewarn_client_connections_dropped_total", "listener=\"api\"");
    assert!(dropped >= 1_000.0, "{dropped}");
    let warnings = server.log().matches("listener is full; closing connections").count();
    assert_eq!(warnings, 1, "{}", server.log());
}

/// promise: S5
#[test]
fn slow_clients_after_a_handshake_do_not_lock_clients_of_azure_out() {
    let place = Place::new();
    let server = place.start(&format!("[arm]\nlisten = '127.0.0.1:0'\nconnection = {NARROW}"));
    let token = place.token();
    let client = TlsClient::new(server.arm(), &place.read("state/forewarn/tls/ca.pem"));
    let mut held: Vec<_> = (0..60).map(|_| client.connect(INCOMPLETE)).collect();
    let mut good = client.connect(&request("/subscriptions?api-version=2022-12-01", &token));
    assert_eq!(status(&answer(&mut good).unwrap().0), 200);
    let (head, body) = answer(&mut held[0]).unwrap();
    assert_eq!((status(&head), body.contains("ServerBusy")), (503, true), "{head}{body}");
}

/// promise: S5
#[test]
fn unfinished_handshakes_do_not_lock_clients_of_azure_out() {
    let place = Place::new();
    let server = place.start(&format!("[arm]\nlisten = '127.0.0.1:0'\nconnection = {NARROW}"));
    let token = place.token();
    let client = TlsClient::new(server.arm(), &place.read("state/forewarn/tls/ca.pem"));
    let _held = hold(server.arm(), 200, &[22, 3, 1, 2, 0]);
    let mut good = client.connect(&request("/subscriptions?api-version=2022-12-01", &token));
    assert_eq!(status(&answer(&mut good).unwrap().0), 200);
}

/// promise: S5
#[test]
fn slow_clients_of_the_socket_do_not_lock_operators_out() {
    let place = Place::new();
    let _server = place.start("");
    let _held = hold_socket(&place.path("api.sock"), MANY, INCOMPLETE.as_bytes());
    let listed = place.run(&["host", "ls"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

/// promise: S5
#[test]
fn a_connection_that_has_authenticated_keeps_its_place() {
    let place = Place::new();
    let server = place.start(&format!("connection = {NARROW}"));
    let token = place.token();
    let mut kept = connect(server.api());
    kept.write_all(request("/v1/hosts", &token).as_bytes()).unwrap();
    assert_eq!(status(&answer(&mut kept).unwrap().0), 200);
    let mut watch = connect(server.api());
    watch.write_all(request("/v1/watch", &token).as_bytes()).unwrap();
    let mut lines = BufReader::new(watch).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("listening")), "the stream begins");
    let _held = hold(server.api(), 200, INCOMPLETE.as_bytes());
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    kept.write_all(request("/v1/hosts", &token).as_bytes()).unwrap();
    assert_eq!(status(&answer(&mut kept).unwrap().0), 200);
    assert!(place.run(&["vm", "restart", "solo"]).status.success());
    assert!(lines.any(|line| line.contains("restart")), "the stream goes on");
    let open = |standing: &str| {
        metric(
            server.api(),
            &token,
            "forewarn_client_connections_open",
            &format!("listener=\"api\",{standing}"),
        )
    };
    wait_until("connections are counted", || (open("standing=\"unauthenticated\"") <= 17.0).then_some(()));
    assert!(open("standing=\"authenticated\"") >= 2.0);
}

/// promise: S5
#[test]
fn a_header_that_takes_too_long_is_answered_408() {
    let place = Place::new();
    let server = place.start("connection = { head = '1s' }");
    let mut slow = connect(server.api());
    slow.write_all(INCOMPLETE.as_bytes()).unwrap();
    let (head, body) = answer(&mut slow).unwrap();
    assert_eq!((status(&head), body.contains("/problems/too-slow")), (408, true), "{head}{body}");
}

/// promise: S5
#[test]
fn a_slow_body_is_answered_408_unless_its_client_has_authenticated() {
    let place = Place::new();
    let server = place.start("connection = { body = '1s' }\n[arm]\nlisten = '127.0.0.1:0'");
    let token = place.token();
    let post = |target: &str, more: &str| {
        format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{{"
        )
    };
    let mut known = connect(server.api());
    known.write_all(post("/v1/commands", &format!("Authorization: Bearer {token}\r\n")).as_bytes()).unwrap();
    let mut stranger = connect(server.api());
    stranger.write_all(post("/common/oauth2/token", "").as_bytes()).unwrap();
    assert_eq!(status(&answer(&mut stranger).unwrap().0), 408);
    known.write_all(b"\"command\":\"nothing\"}").unwrap();
    let (head, _) = answer(&mut known).unwrap();
    assert_eq!(status(&head), 400, "the whole body was read: {head}");
}

/// promise: S5
#[test]
fn a_header_that_is_too_long_is_answered_431() {
    let place = Place::new();
    let server = place.start("");
    let token = place.token();
    let with = |length: usize| {
        request("/v1/hosts", &token).replacen("\r\n", &format!("\r\nX: {}\r\n", "x".repeat(length)), 1)
    };
    assert_eq!(ask(server.api(), &with(60 * 1024)), 200);
    assert_eq!(ask(server.api(), &with(65 * 1024)), 431);
    let ended =
        metric(server.api(), &token, "forewarn_client_connections_ended_total", "limit=\"head_bytes\"");
    assert!(ended >= 1.0, "{ended}");
}
