//! `forewarn health`: an exit code for health checks.

use std::net::TcpListener;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{RunningCommand, TestServer, clean_command};
use serde_json::{Value, json};

use super::server;

#[test]
fn a_server_that_is_ready_is_healthy() {
    let server = server();
    assert_eq!(server.run(&["health"]), format!("ready: {}\n", server.api_url()));
    let shown: Value = server.json(&["health", "--wait", "1s"]);
    assert_eq!(shown, json!({ "ready": true, "server": server.api_url() }));
}

/// A free port, which nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_server_that_is_not_there_is_not_healthy() {
    let url = format!("http://127.0.0.1:{}", free_port());
    for more in [[].as_slice(), &["--wait", "1s"]] {
        let mut command = clean_command(crate::program());
        command.args(["--api", &url, "--output", "json", "health"]).args(more);
        let ran = run_with_input(&mut command, "");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("not ready: cannot reach the server"), "{ran:?}");
        let shown: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(shown["ready"], false);
        assert!(shown["reason"].as_str().unwrap().starts_with("cannot reach the server"), "{shown}");
    }
}

#[test]
fn a_wait_ends_when_the_server_is_ready() {
    let port = free_port();
    let mut health = clean_command(crate::program());
    health.args(["--api", &format!("http://127.0.0.1:{port}"), "health", "--wait", "1m"]);
    let health = RunningCommand::start(&mut health);
    let mut dev = clean_command(crate::program());
    dev.args(["dev", "--arm-listen", "off", "--metadata-listen", "127.0.0.1:0"]);
    dev.args(["--api-listen", &format!("127.0.0.1:{port}")]);
    let _server = TestServer::spawn(crate::program(), dev);
    let ran = health.end();
    assert_eq!((ran.code, ran.out), (Some(0), format!("ready: http://127.0.0.1:{port}\n")));
}
