//! Identification of callers.

use std::net::Ipv4Addr;
use std::time::Duration;

use forewarn_control::request::{Administration, RequestContext};
use forewarn_lifecycle::Command;
use forewarn_metadata::{ControlPlane, Identity, Settings};
use forewarn_server::ClockCommand;

use crate::metadata::support::{NEWEST, SOLO, WEB_0, get, name, start_server, start_server_with};

const FORBIDDEN: (u16, &str) =
    (403, r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#);

/// promise: M3
#[tokio::test]
async fn a_stranger_learns_nothing_whatever_it_sends() {
    let server = start_server().await;
    for request in [
        get(NEWEST),
        get("/elsewhere"),
        "GET /metadata/instance HTTP/1.1\r\nHost: evil.com\r\nVia: x\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ] {
        let mut connection = server.connect_from(Ipv4Addr::new(127, 0, 0, 99)).await;
        connection.send(&request).await;
        assert_eq!(connection.answer().await.short(), FORBIDDEN, "{request}");
    }
    assert!(!server.caller("web/web_0").slot.read().is_enrolled());
}

/// promise: M3
#[tokio::test]
async fn a_machine_is_known_by_its_address_and_forgotten_when_it_is_gone() {
    let server = start_server().await;
    let mut connection = server.connect(SOLO).await;
    let name = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    connection.send(&name).await;
    assert_eq!(connection.answer().await.short(), (200, "solo"));
    server.submit(Command::Delete(SOLO)).await;
    // No tenant is enrolled, so the deletion happens at once; wait until it is published.
    while server.control.caller_named("solo").is_some() {
        server.control.look(|_| ()).unwrap();
    }
    connection.send(&name).await;
    assert_eq!(connection.answer().await.short(), FORBIDDEN);
}

/// promise: M3
#[tokio::test]
async fn who_polls_with_the_same_bytes_is_looked_up_each_time() {
    let server = start_server().await;
    let mut connection = server.connect(SOLO).await;
    for _ in 0..4 {
        connection.send(&get(NEWEST)).await;
        assert_eq!(connection.answer().await.status(), 200);
    }
    server.submit(Command::Delete(SOLO)).await;
    // The event is visible for five minutes.
    server.control.drive(ClockCommand::Advance(Duration::from_mins(6))).await.unwrap();
    connection.send(&get(NEWEST)).await;
    assert_eq!(connection.answer().await.short(), FORBIDDEN);
}

/// promise: M3
#[tokio::test]
async fn a_listener_may_belong_to_one_machine() {
    let server = start_server_with(Settings::default(), Identity::Machine("web/web_1".to_owned())).await;
    let answer =
        server.get(WEB_0, "/metadata/instance/compute/name?api-version=2021-02-01&format=text").await;
    assert_eq!(answer.short(), (200, "web_1"));
    let anonymous = start_server_with(Settings::default(), Identity::Machine("unknown".to_owned())).await;
    assert_eq!(anonymous.get(WEB_0, NEWEST).await.short(), FORBIDDEN);
}

/// promise: M3
#[tokio::test]
async fn in_development_a_path_may_name_the_caller() {
    let default = Some("solo".to_owned());
    let server = start_server_with(Settings::default(), Identity::Prefix { default }).await;
    let name = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
    for (prefix, expected) in [
        ("/", (200, "solo")),
        ("/vm/web_1/", (200, "web_1")),
        ("/vm/web/web_10/", (200, "web_10")),
        ("/vm/unknown/", FORBIDDEN),
        ("/vm/solo/web_1/", FORBIDDEN),
    ] {
        assert_eq!(server.get(WEB_0, &format!("{prefix}{name}")).await.short(), expected, "{prefix}");
    }
    assert_eq!(server.get(WEB_0, "/elsewhere").await.status(), 404);
    let anonymous = start_server_with(Settings::default(), Identity::Prefix { default: None }).await;
    assert_eq!(anonymous.get(WEB_0, &format!("/{name}")).await.short(), FORBIDDEN);
    assert_eq!(anonymous.get(WEB_0, &format!("/vm/web_0/{name}")).await.short(), (200, "web_0"));
}

/// promise: M3
#[tokio::test]
async fn a_listener_knows_the_addresses_of_its_cluster() {
    let of_west = || Identity::Address { cluster: name("west") };
    let server = start_server_with(Settings::default(), of_west()).await;
    let stranger = server.get(SOLO, NEWEST).await;
    assert_eq!(stranger.short(), FORBIDDEN, "there is no such cluster");

    let administer = async |command| {
        server.control.administer(command, RequestContext::default()).await.unwrap();
    };
    administer(Administration::CreateCluster(name("west"))).await;
    let west = server.control.named("west").unwrap();
    for command in [
        r#"{"command":"admit_host","name":"h1"}"#,
        r#"{"command":"admit_vm","name":"far","host":"h1","addresses":["127.0.0.50"]}"#,
    ] {
        west.run_commands(vec![serde_json::from_str(command).unwrap()]).await.unwrap();
    }
    let mut far = server.connect_from(Ipv4Addr::new(127, 0, 0, 50)).await;
    let mut answer = async || {
        far.send(&get(NEWEST)).await;
        far.answer().await.status()
    };
    for _ in 0..3 {
        assert_eq!(answer().await, 200);
    }
    assert_eq!(server.get(SOLO, NEWEST).await.short(), FORBIDDEN, "a machine of the default cluster");

    let rename = |from, to| Administration::RenameCluster { cluster: name(from), name: name(to) };
    administer(rename("west", "east")).await;
    assert_eq!(answer().await, 403, "the settings still name the former cluster");
    administer(rename("east", "west")).await;
    assert_eq!(answer().await, 200);
}
