//! Who is calling.

use std::net::Ipv4Addr;
use std::time::Duration;

use forewarn_lifecycle::Command;
use forewarn_metadata::{Identity, Settings};
use forewarn_server::ClockCommand;

use crate::support::{NEWEST, SOLO, WEB_0, get, world, world_with};

const FORBIDDEN: (u16, &str) =
    (403, r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#);

#[tokio::test]
async fn a_stranger_learns_nothing_whatever_it_sends() {
    let world = world().await;
    for request in [
        get(NEWEST),
        get("/elsewhere"),
        "GET /metadata/instance HTTP/1.1\r\nHost: evil.com\r\nVia: x\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ] {
        let mut line = world.connect_from(Ipv4Addr::new(127, 0, 0, 99)).await;
        line.send(&request).await;
        assert_eq!(line.answer().await.short(), FORBIDDEN, "{request}");
    }
    assert!(!world.caller("web/web_0").slot.read().enrolled);
}

#[tokio::test]
async fn a_machine_is_known_by_its_address_and_forgotten_when_it_is_gone() {
    let world = world().await;
    let mut line = world.connect(SOLO).await;
    let name = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    line.send(&name).await;
    assert_eq!(line.answer().await.short(), (200, "solo"));
    world.submit(Command::Delete(SOLO)).await;
    // Nobody is enrolled, so it happens at once; whoever looks comes after it.
    while world.engine.directory().named("solo").is_some() {
        world.engine.look(|_| ()).unwrap();
    }
    line.send(&name).await;
    assert_eq!(line.answer().await.short(), FORBIDDEN);
}

#[tokio::test]
async fn who_polls_with_the_same_bytes_is_looked_up_each_time() {
    let world = world().await;
    let mut line = world.connect(SOLO).await;
    for _ in 0..4 {
        line.send(&get(NEWEST)).await;
        assert_eq!(line.answer().await.status(), 200);
    }
    world.submit(Command::Delete(SOLO)).await;
    // It sees its end for five minutes.
    world.engine.drive(ClockCommand::Advance(Duration::from_mins(6))).await.unwrap();
    line.send(&get(NEWEST)).await;
    assert_eq!(line.answer().await.short(), FORBIDDEN);
}

#[tokio::test]
async fn a_listener_may_belong_to_one_machine() {
    let world = world_with(Settings::default(), Identity::Machine("web/web_1".to_owned())).await;
    let answer = world.get(WEB_0, "/metadata/instance/compute/name?api-version=2021-02-01&format=text").await;
    assert_eq!(answer.short(), (200, "web_1"));
    let nobody = world_with(Settings::default(), Identity::Machine("nobody".to_owned())).await;
    assert_eq!(nobody.get(WEB_0, NEWEST).await.short(), FORBIDDEN);
}

#[tokio::test]
async fn in_development_a_path_may_name_the_caller() {
    let default = Some("solo".to_owned());
    let world = world_with(Settings::default(), Identity::Prefix { default }).await;
    let name = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
    for (prefix, expected) in [
        ("/", (200, "solo")),
        ("/vm/web_1/", (200, "web_1")),
        ("/vm/web/web_10/", (200, "web_10")),
        ("/vm/nobody/", FORBIDDEN),
        ("/vm/solo/web_1/", FORBIDDEN),
    ] {
        assert_eq!(world.get(WEB_0, &format!("{prefix}{name}")).await.short(), expected, "{prefix}");
    }
    assert_eq!(world.get(WEB_0, "/elsewhere").await.status(), 404);
    let nobody = world_with(Settings::default(), Identity::Prefix { default: None }).await;
    assert_eq!(nobody.get(WEB_0, &format!("/{name}")).await.short(), FORBIDDEN);
    assert_eq!(nobody.get(WEB_0, &format!("/vm/web_0/{name}")).await.short(), (200, "web_0"));
}
