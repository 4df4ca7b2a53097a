//! `forewarn reset` and `forewarn state`: a test sees what it would see on a server that has just started.

mod health;
mod saved;
mod under_load;
mod variables;

use forewarn_testkit::operator::{read, value, write};
use forewarn_testkit::{TestServer, raw_http};
use serde_json::{Value, json};

/// Everything that operators can read of a cluster, and of the server.
const PATHS: [&str; 14] = [
    "/v1/fleet",
    "/v1/clock",
    "/v1/server",
    "/v1/clusters",
    "/v1/tokens",
    "/v1/webhooks",
    "/v1/hosts?limit=1000",
    "/v1/machines?limit=1000",
    "/v1/tenants?limit=1000",
    "/v1/events?limit=1000",
    "/v1/rollouts?limit=1000",
    "/v1/settings",
    "/v1/brake",
    "/v1/audit?limit=1000",
];

/// One machine of each tenant of the demo fleet.
const MACHINES: [&str; 4] = ["solo", "web_0", "db-0", "batch_0"];

fn server() -> TestServer {
    TestServer::start_with(crate::program(), &["--arm-listen", "off"])
}

/// Everything that operators and then machines can read. Machines that read enrol their tenants: the last part shows
/// what that leaves.
fn everything(server: &TestServer) -> Vec<(String, Value)> {
    let read = |path: &str| {
        let mut found = value(&read(server.api(), path).unwrap());
        if path == "/v1/server" {
            // The port is another one.
            found.as_object_mut().unwrap().remove("metadata");
        }
        for webhook in found["items"].as_array_mut().into_iter().flatten().filter(|_| path == "/v1/webhooks")
        {
            // Deliveries use the time of the system.
            for member in ["error", "failing_since", "last_entries"] {
                webhook.as_object_mut().unwrap().remove(member);
            }
        }
        (path.to_owned(), found)
    };
    let mut all: Vec<_> = PATHS.into_iter().map(read).collect();
    for machine in MACHINES {
        all.push((format!("document of {machine}"), server.document(machine)));
    }
    all.extend(PATHS.into_iter().map(read));
    all
}

fn assert_same(found: &[(String, Value)], expected: &[(String, Value)]) {
    assert_eq!(found.len(), expected.len());
    for ((path, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{path}");
    }
}

/// Status and body of a request without a body.
fn send(server: &TestServer, method: &str, path: &str) -> raw_http::RawResponse {
    let api = server.api();
    raw_http::ask(api, &format!("{method} {path} HTTP/1.1\r\nHost: {api}\r\nContent-Length: 0\r\n\r\n"))
        .unwrap()
}

fn reset(server: &TestServer) -> Value {
    value(&send(server, "POST", "/v1/reset"))
}

/// Changes everything that can be changed.
fn change_much(server: &TestServer) {
    server.enrol(&MACHINES);
    server.restart("solo");
    server.run(&["clock", "advance", "15m"]);
    server.run(&["vm", "create", "extra", "--host", "h1"]);
    server.run(&["vm", "restart", "extra"]);
    server.run(&["rollout", "start", "--all", "--kind", "reboot"]);
    server.run(&["brake", "on"]);
    server.run(&["settings", "set", "--user-operations-max", "3"]);
    server.run(&["cluster", "create", "west"]);
    server.run(&["token", "create", "ci", "--role", "viewer"]);
    server.run(&["webhook", "create", "ops", "http://127.0.0.1:9/x"]);
    server.run(&["clock", "advance", "1d"]);
    server.run(&["clock", "scale", "60"]);
}

/// promise: X1
#[test]
fn a_server_after_a_reset_is_like_one_that_has_just_started() {
    let (fresh, server) = (server(), server());
    change_much(&server);
    let clock = reset(&server);
    assert_eq!((&clock["now"], &clock["speed"]), (&json!("2026-01-01T00:00:00Z"), &json!(0)));
    assert_same(&everything(&server), &everything(&fresh));
    let expected = fresh.restart("web_0");
    assert_eq!(server.restart("web_0"), expected, "the ids of events are the same");
    // A second reset returns to the same state, and not to that of the first.
    assert_eq!(server.run(&["reset"]), "reset: the clock shows 2026-01-01 00:00:00Z and is frozen\n");
    assert_eq!(server.restart("web_0"), expected);
    server.run(&["audit", "verify"]);
}

#[test]
fn work_in_progress_ends_with_a_reset() {
    let (fresh, server) = (server(), server());
    let expected = everything(&fresh);
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    server.advance("15m");
    assert_eq!(server.status("solo"), "Started");
    reset(&server);
    assert_same(&everything(&server), &expected);
    server.advance("1h");
    assert_eq!(
        value(&read(server.api(), "/v1/machines/solo").unwrap())["boots"],
        json!(1),
        "nothing came after it"
    );
    reset(&server);
    assert_eq!((server.ids("solo").len(), server.restart("solo")), (0, id));
}

#[test]
fn steps_of_persons_end_with_a_reset() {
    let server = TestServer::start_with(crate::program(), &["--arm-listen", "off", "--host-work", "manual"]);
    for _ in 0..3 {
        server.run(&["host", "update", "h1"]);
        server.run(&["clock", "advance", "1d"]);
        let ready =
            |entries: &Value| entries["items"].as_array().unwrap().iter().any(|one| one["kind"] == "ready");
        forewarn_testkit::wait_until("the host is ready for the person", || {
            ready(&value(&read(server.api(), "/v1/audit?limit=1000").unwrap())).then_some(())
        });
        reset(&server);
        assert!(!ready(&value(&read(server.api(), "/v1/audit?limit=1000").unwrap())));
        assert_eq!(value(&read(server.api(), "/v1/rollouts").unwrap())["items"], json!([]));
    }
}

#[test]
fn a_key_that_was_used_before_a_reset_is_new() {
    let server = server();
    let command = |machine: &str| {
        let body = json!({ "command": "restart", "machine": machine }).to_string();
        let fields = format!(
            "Content-Type: application/json\r\nIdempotency-Key: k1\r\nContent-Length: {}\r\n",
            body.len()
        );
        raw_http::ask(server.api(), &(raw_http::request("POST /v1/commands", &fields) + &body))
            .unwrap()
            .status()
    };
    assert_eq!((command("solo"), command("web_0")), (200, 422));
    reset(&server);
    assert_eq!(command("web_0"), 200);
}

#[test]
fn a_stream_ends_with_a_reset_and_watch_goes_on() {
    let server = server();
    server.enrol(&["solo"]);
    let api = server.api();
    let mut stream = raw_http::RawConnection::connect(api);
    stream.send(&format!("GET /v1/watch HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\r\n"));
    let watch = forewarn_testkit::RunningCommand::start(&mut server.command(&["watch"]));
    // Whoever sees an entry is listening.
    for number in 0.. {
        server.run(&["brake", if number % 2 == 0 { "on" } else { "off" }]);
        if watch.line_soon().is_some() {
            break;
        }
    }
    reset(&server);
    assert!(stream.rest().contains("listening"), "it has begun, and has ended");
    for number in 0.. {
        server.run(&["brake", if number % 2 == 0 { "on" } else { "off" }]);
        if watch.line_soon().is_some_and(|line| line.contains("brake")) {
            break;
        }
    }
    watch.interrupt();
}

#[test]
fn a_request_that_waits_for_a_change_ends_with_a_reset() {
    let server = server();
    server.enrol(&["solo"]);
    let incarnation = server.document("solo")["DocumentIncarnation"].clone();
    let mut line = server.connect();
    line.send(&raw_http::get(&format!("/vm/solo{}&wait=60s&incarnation={incarnation}", raw_http::NEWEST)));
    let metrics = || read(server.api(), "/metrics").unwrap().body;
    forewarn_testkit::wait_until("the request waits", || {
        metrics().lines().any(|line| line.contains("waiting") && line.ends_with(" 1")).then_some(())
    });
    reset(&server);
    assert_eq!(line.answer().status(), 200);
}

#[test]
fn only_a_server_for_development_in_memory_can_be_reset() {
    let directory = forewarn_testkit::TestDir::new();
    let durable = TestServer::start_with(
        crate::program(),
        &["--arm-listen", "off", "--data-dir", &directory.path("data")],
    );
    let real = forewarn_testkit::ServeDir::new(
        crate::program(),
        "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]",
    );
    let real = real.start(
        "in_memory = true\nfleet = 'DIR/fleet.toml'\napi.listen = '127.0.0.1:0'\ndriver.kind = 'simulated'\n\
         metadata.listen = [{ address = '127.0.0.1:0', machine = 'solo' }]\n",
    );
    for (server, words) in [(&durable, "without --data-dir"), (&real, "only a server for development")] {
        let token = if words.starts_with("only") { vec![("token", server.key())] } else { vec![] };
        for command in [["reset"].as_slice(), &["state", "save", "-"]] {
            let mut command = server.command(command);
            command.envs(token.iter().map(|(_, token)| ("FOREWARN_TOKEN", token)));
            let output = command.output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert!(message.contains(words) && message.contains("hint: "), "{message}");
        }
    }
    let refused = send(&durable, "POST", "/v1/reset");
    assert_eq!(refused.status(), 409);
    let went_on = write(durable.api(), "/v1/commands", &json!({"command": "brake_on"})).unwrap();
    assert_eq!(went_on.status(), 200);
}
