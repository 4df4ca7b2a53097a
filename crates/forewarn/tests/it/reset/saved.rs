//! Saved states: save, change, load; and on another server.

use std::process::Output;

use forewarn_testkit::operator::{read, value};
use forewarn_testkit::{TestDir, TestServer};
use serde_json::{Value, json};

use super::{assert_same, change_much, everything, reset, server};

fn load(server: &TestServer, file: &str) -> Output {
    server.try_run(&["state", "load", file])
}

/// The event of a machine, as its document shows it.
fn event(server: &TestServer, machine: &str) -> Value {
    server.document(machine)["Events"][0].clone()
}

#[test]
fn a_loaded_state_is_that_which_was_saved() {
    let (server, directory) = (server(), TestDir::new());
    change_much(&server);
    server.run(&["clock", "freeze"]);
    let (file, expected) = (directory.path("state"), everything(&server));
    server.run(&["state", "save", &file]);
    reset(&server);
    server.restart("web_0");
    assert!(load(&server, &file).status.success());
    assert_same(&everything(&server), &expected);
    server.run(&["audit", "verify"]);
    assert!(!server.try_run(&["state", "save", &file]).status.success(), "no file is overwritten");
    // The server does not keep a loaded state: a reset returns to the start.
    assert_eq!(reset(&server)["now"], json!("2026-01-01T00:00:00Z"));
}

#[test]
fn an_event_keeps_its_id_and_its_time_on_another_server() {
    let (server, directory) = (server(), TestDir::new());
    server.enrol(&["solo"]);
    server.restart("solo");
    server.advance("5m");
    let (file, expected) = (directory.path("state"), event(&server, "solo"));
    server.run(&["state", "save", &file]);
    drop(server);
    let other = TestServer::spawn(crate::program(), {
        let mut command = forewarn_testkit::clean_command(crate::program());
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off", "--fleet", "none", "--clock", "real", "--seed", "9"]);
        command
    });
    let printed = other.run(&["state", "load", &file]);
    assert_eq!(printed, "loaded: the clock shows 2026-01-01 00:05:00Z and is frozen\n");
    assert_eq!(event(&other, "solo"), expected);
    other.advance("9m59s");
    assert_eq!(other.status("solo"), "Scheduled");
    other.advance("1s");
    assert_eq!(other.status("solo"), "Started");
    other.advance("10m");
    assert_eq!(other.ids("solo").len(), 0);
    let shown = other.json(&["event", "explain", expected["EventId"].as_str().unwrap()]);
    assert!(!shown["history"].as_array().unwrap().is_empty(), "its past is known: {shown}");
}

#[test]
fn all_clusters_are_saved_and_their_work_goes_on() {
    let (server, directory) = (server(), TestDir::new());
    server.run(&["cluster", "create", "west"]);
    let fleet =
        directory.write("west.toml", "host = [{ name = 'h1' }]\nvm = [{ name = 'far', host = 'h1' }]\n");
    server.run(&["--cluster", "west", "fleet", "apply", &fleet]);
    let far = "west/far/far";
    server.enrol(&["solo", far]);
    server.run(&["--cluster", "west", "vm", "restart", "far"]);
    let expected = event(&server, far);
    assert_eq!(expected["EventStatus"], "Scheduled");
    let file = directory.path("state");
    server.run(&["state", "save", &file]);
    reset(&server);
    assert_eq!(value(&read(server.api(), "/v1/clusters").unwrap())["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.get(far, forewarn_testkit::NEWEST).status(), 403, "its cluster is gone");
    for _ in 0..3 {
        assert!(load(&server, &file).status.success());
        assert_eq!(event(&server, far), expected);
        server.advance("15m");
        assert_eq!(server.status(far), "Started");
        server.run(&["--cluster", "west", "vm", "create", "near", "--host", "h1"]);
    }
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing() {
    let (server, directory) = (server(), TestDir::new());
    change_much(&server);
    server.run(&["clock", "freeze"]);
    let file = directory.path("state");
    server.run(&["state", "save", &file]);
    let text = directory.read("state");
    let expected = everything(&server);
    let with = |member: &str, value: Value| {
        let mut state: Value = serde_json::from_str(&text).unwrap();
        state[member] = value;
        state.to_string()
    };
    let export = serde_json::from_str::<Value>(&text).unwrap()["export"].as_str().unwrap().to_owned();
    let middle = export.len() / 2;
    let other = if export.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let changed = format!("{}{other}{}", &export[..middle], &export[middle + 1..]);
    let mut far_end = serde_json::from_str::<Value>(&text).unwrap()["audit_ends"].take();
    far_end[0]["number"] = json!(u64::MAX);
    for (name, content, words) in [
        ("cut", text[..text.len() / 2].to_owned(), "invalid body"),
        ("empty", String::new(), "empty body"),
        ("foreign", r#"{"host":[{"name":"h1"}]}"#.to_owned(), "invalid body"),
        ("export", with("export", "Zm9yZXdhcm4=".into()), "the saved state is damaged"),
        ("byte", with("export", changed.into()), "the saved state is damaged"),
        ("speed", with("speed", json!(u32::MAX)), "the saved state is damaged"),
        ("audit", text.replacen("brake", "break", 1), "the saved state is damaged"),
        ("end", with("audit_ends", json!([])), "the saved state is damaged"),
        ("positions", with("audit_entries", json!(1)), "the saved state is damaged"),
        ("last", with("audit_entries", json!(u64::MAX)), "the saved state is damaged"),
        ("beyond", with("audit_ends", far_end), "the saved state is damaged"),
        ("newer", with("forewarn_state", json!(2)), "has a later format"),
        ("older", with("forewarn_state", json!(0)), "the saved state is damaged"),
        ("more", with("more", json!(1)), "invalid body"),
    ] {
        let refused = load(&server, &directory.write(name, &content));
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{name}: {message}");
        assert!(message.contains(words), "{name}: {message}");
    }
    assert_same(&everything(&server), &expected);
}
