//! `forewarn dashboard` between the browser and any server: sockets, TLS with a token, streams and large bodies.

use std::io::Write;
use std::process::Command;

use forewarn_testkit::{TestServer, clean_command, wait_until};
use serde_json::{Value, json};

use super::place::{Ask, Dashboard, MARK, read_rest, read_until};
use crate::access::place::Place;

/// Opens `/v1/watch` through the dashboard; gives the stream after its head.
fn watch(dashboard: &Dashboard) -> std::net::TcpStream {
    let fields = format!("{MARK}{}", dashboard.cookie);
    let request = Ask { line: "GET /v1/watch", host: &dashboard.host(), fields: &fields, body: "" };
    let mut stream = dashboard.connect();
    stream.write_all(request.bytes().as_bytes()).unwrap();
    let head = read_until(&mut stream, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.to_lowercase().contains("text/event-stream"), "{head}");
    stream
}

fn by_socket(place: &Place) -> Command {
    let mut command = place.command();
    command.args(["--api", &format!("unix:{}", place.path("api.sock"))]);
    command
}

#[test]
fn the_dashboard_of_a_socket_reads_changes_and_follows() {
    let place = Place::new();
    let _server = place.start();
    let dashboard = Dashboard::open(&mut by_socket(&place));
    let caller = dashboard.ask("GET /v1/caller", "").json();
    assert_eq!((&caller["by"], &caller["role"]), (&json!("socket"), &json!("admin")));
    let mut stream = watch(&dashboard);
    // Each change arrives while the stream goes on.
    for (words, command) in [("on", "brake_on"), ("off", "brake_off")] {
        place.out(&["brake", words]);
        read_until(&mut stream, command);
    }
    let changed = dashboard.ask("POST /v1/commands", r#"{"command":"brake_on"}"#);
    assert_eq!(changed.status, 200, "{changed:?}");
    read_until(&mut stream, "brake_on");
    let refused = dashboard.ask("POST /v1/commands", r#"{"command":"restart","machine":"nothing"}"#);
    assert_eq!((refused.status, &refused.json()["type"]), (404, &json!("/problems/not-found")));
    let host = dashboard.ask("GET /v1/hosts/h1", "");
    let tag = host.header("etag").unwrap().to_owned();
    let fields = format!("{MARK}{}If-None-Match: {tag}\r\n", dashboard.cookie);
    assert_eq!(dashboard.ask_with("GET /v1/hosts/h1", &fields, "").status, 304);
    for asset in forewarn_dashboard::ASSETS {
        let answer = dashboard.ask_with(&format!("GET {}", asset.path), "", "");
        assert_eq!((answer.status, answer.body.as_slice()), (200, asset.bytes), "{}", asset.path);
        assert!(answer.header("content-security-policy").is_some(), "{}", asset.path);
    }
    assert_eq!(dashboard.running.interrupt(), Some(0), "also while a stream is open");
}

/// promise: S4
#[test]
fn the_dashboard_of_a_context_uses_its_token_and_shows_it_to_nobody() {
    let place = Place::new();
    let api = "listen = '127.0.0.1:0'\nsocket = 'DIR/api.sock'\ntls = { self_signed = true }";
    let server = place.start_with(api, "");
    let token = place.token("ann --role operator --tenant web");
    let file = place.write("ann.token", &token);
    place.set_mode("ann.token", 0o600);
    let url = wait_until("the address", || {
        let log = server.log();
        let (_, rest) = log.split_once("dashboard=\"")?;
        Some(rest.split_once("/\"")?.0.to_owned())
    });
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let command = || {
        let mut command = place.command();
        command.env("XDG_CONFIG_HOME", place.path("config"));
        command
    };
    let ca = place.path("data/tls/ca.pem");
    let words = ["context", "set", "prod", "--api", &url, "--ca", &ca, "--token-file", &file];
    forewarn_testkit::command::stdout_of(command().args(words));
    let mut dashboard = Dashboard::open(command().args(["--context", "prod"]));
    let caller = dashboard.ask("GET /v1/caller", "");
    assert_eq!(caller.json()["by"], "token ann");
    let machines = dashboard.ask("GET /v1/machines", "");
    assert!(machines.text().contains("web_0") && !machines.text().contains("db_0"), "{machines:?}");
    assert_eq!(dashboard.ask("GET /v1/events", "").status, 200);
    assert_eq!(dashboard.ask("GET /v1/tokens", "").status, 403);
    let mut stream = watch(&dashboard);
    let restarted = dashboard.ask("POST /v1/commands", r#"{"command":"restart","machine":"web_0"}"#);
    assert_eq!(restarted.status, 200, "{restarted:?}");
    let streamed = read_until(&mut stream, "restart");
    let secret = token.rsplit('_').next().unwrap();
    for text in [caller.head, whole_text(&machines), streamed] {
        assert!(!text.contains(secret), "{text}");
    }
    // The token of the login of the server itself is not for this page.
    let login = dashboard.ask("POST /session", &format!(r#"{{"token":"{token}"}}"#));
    assert_eq!(login.status, 400, "{login:?}");

    place.out(&["token", "delete", "ann"]);
    let over = dashboard.ask("GET /v1/caller", "");
    let problem = over.json();
    assert_eq!((over.status, &problem["type"]), (401, &json!("/problems/dashboard-session")));
    assert!(problem["detail"].as_str().unwrap().contains("no longer accepts the token"), "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("Ctrl-C"), "{problem}");
    read_rest(&mut stream);
    dashboard.running.hear("Dashboard of https://127.0.0.1:");
    let ended = dashboard.running.interrupted();
    assert!(ended.code == Some(0) && !ended.err.contains(secret) && !ended.out.contains(secret), "{ended:?}");
}

fn whole_text(answer: &super::place::Answer) -> String {
    format!("{}\n{}", answer.head, answer.text())
}

#[test]
fn large_bodies_and_many_requests_go_through() {
    use std::fmt::Write as _;
    let mut fleet = String::new();
    (0..4_000).for_each(|number| {
        writeln!(fleet, "[[host]]\nname = 'host-with-a-long-name-{number:0>40}'").unwrap();
    });
    let files = forewarn_testkit::TestDir::new();
    let server = TestServer::start_with(crate::program(), &["--fleet", &files.write("fleet.toml", &fleet)]);
    let mut command = clean_command(crate::program());
    let dashboard = Dashboard::open(command.args(["--api", server.api_url()]));
    let state = dashboard.ask("GET /v1/state", "");
    assert!(state.status == 200 && state.body.len() > 300_000, "{} {}", state.status, state.body.len());
    let loaded = dashboard.ask("PUT /v1/state", std::str::from_utf8(&state.body).unwrap());
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    let browser = &dashboard.browser;
    let hosts = || -> Value { browser.ask("GET /v1/hosts?limit=1000", "").json() };
    let expected = hosts();
    assert_eq!(expected["items"].as_array().unwrap().len(), 1_000);
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| assert_eq!(hosts(), expected));
        }
    });
}

#[test]
fn a_server_that_ends_is_reported_and_found_again() {
    let place = Place::new();
    let server = place.start();
    let dashboard = Dashboard::open(&mut by_socket(&place));
    server.kill();
    let answer = dashboard.ask("GET /v1/caller", "");
    let problem = answer.json();
    assert_eq!((answer.status, &problem["type"]), (502, &json!("/problems/unreachable")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("cannot reach the server at unix:"), "{problem}");
    let _server = place.start();
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 200, "the session goes on");
}
