//! How much of the endpoint one machine may use.

use forewarn_lifecycle::{Command, MachineId};
use forewarn_metadata::{Identity, Limits, Rate, Settings};

use crate::support::{Line, NEWEST, SOLO, WEB_0, WEB_1, World, get, world, world_with};

/// Everything is limited but the rate.
fn settings() -> Settings {
    let rate = Rate { per_second: 1_000_000, burst: 1_000_000 };
    Settings { limits: Some(Limits { rate, ..Limits::default() }), ..Settings::default() }
}

async fn limited() -> World {
    let world = world_with(settings(), Identity::Address).await;
    world.enrol_all().await;
    world
}

const VERSIONS: &str = "/metadata/versions";

async fn is_open(line: &mut Line) -> bool {
    // The connection may have been reset already.
    drop(tokio::io::AsyncWriteExt::write_all(&mut line.0, get(VERSIONS).as_bytes()).await);
    let mut first = [0];
    let read = tokio::io::AsyncReadExt::read(&mut line.0, &mut first).await;
    read.is_ok_and(|bytes| bytes == 1)
}

async fn waiting(world: &World, machine: MachineId) -> Line {
    let mut line = world.connect(machine).await;
    line.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    line
}

async fn until(world: &World, name: &str, count: u64) {
    while world.count(name) != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_machine_has_sixteen_connections_and_no_more() {
    let world = limited().await;
    let mut lines = Vec::new();
    for _ in 0..16 {
        let mut line = world.connect(WEB_0).await;
        assert!(is_open(&mut line).await);
        lines.push(line);
    }
    assert!(!is_open(&mut world.connect(WEB_0).await).await);
    assert_eq!(world.count("forewarn_metadata_connections_refused_total{reason=\"machine\"}"), 1);
    assert!(is_open(&mut world.connect(WEB_1).await).await, "another machine");
    lines.pop();
    until(&world, "forewarn_metadata_connections_open", 15).await;
    assert!(is_open(&mut world.connect(WEB_0).await).await, "one has gone");
}

#[tokio::test]
async fn four_requests_of_a_machine_may_wait_for_news() {
    let world = limited().await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(waiting(&world, WEB_0).await);
    }
    until(&world, "forewarn_metadata_waiting_requests", 4).await;
    let answer = waiting(&world, WEB_0).await.answer().await;
    assert_eq!(answer.short(), (429, r#"{ "error": "Too many requests" }"#));
    assert_eq!((answer.header("Retry-After"), answer.header("Connection")), (Some("1"), None));
    assert_eq!(world.count("forewarn_metadata_limited_total{limit=\"waiting\"}"), 1);
    let news = get(&format!("{NEWEST}&wait=60s&incarnation=7"));
    assert_eq!(world.say(WEB_0, &news).await.status(), 200, "there is nothing to wait for");
    lines.push(waiting(&world, WEB_1).await);
    lines.push(waiting(&world, SOLO).await);
    drop(lines.remove(0));
    until(&world, "forewarn_metadata_waiting_requests", 5).await;
    lines.push(waiting(&world, WEB_0).await);
    until(&world, "forewarn_metadata_waiting_requests", 6).await;
    world.submit(Command::Restart(WEB_0)).await;
    assert_eq!(lines[0].answer().await.header("ETag"), Some("\"2\""));
}

#[tokio::test]
async fn eight_requests_of_a_machine_may_be_under_way() {
    let world = limited().await;
    let mut lines = Vec::new();
    for _ in 0..8 {
        let mut line = world.connect(WEB_0).await;
        // A body that does not come: the request stays under way.
        line.send(&format!(
            "POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        ))
        .await;
        assert_eq!(line.answer().await.status(), 100);
        lines.push(line);
    }
    let answer = world.get(WEB_0, VERSIONS).await;
    assert_eq!((answer.status(), answer.header("Retry-After")), (429, Some("1")));
    assert_eq!(world.count("forewarn_metadata_limited_total{limit=\"in_flight\"}"), 1);
    assert_eq!(world.get(WEB_1, VERSIONS).await.status(), 200, "another machine");
    drop(lines.pop());
    until(&world, "forewarn_metadata_connections_open", 7).await;
    assert_eq!(world.get(WEB_0, VERSIONS).await.status(), 200);
}

#[tokio::test]
async fn without_limits_a_machine_has_as_much_as_it_likes() {
    let world = world().await;
    world.enrol_all().await;
    let mut lines = Vec::new();
    for _ in 0..40 {
        lines.push(waiting(&world, WEB_0).await);
    }
    until(&world, "forewarn_metadata_waiting_requests", 40).await;
    assert_eq!(world.get(WEB_0, VERSIONS).await.status(), 200);
}

#[tokio::test]
async fn where_only_a_path_names_the_caller_connections_are_not_counted() {
    let world = world_with(settings(), Identity::Prefix { default: None }).await;
    let mut lines = Vec::new();
    for _ in 0..20 {
        lines.push(world.connect(WEB_0).await);
    }
    let last = lines.last_mut().unwrap();
    last.send(&get(&format!("/vm/web_0{NEWEST}"))).await;
    assert_eq!(last.answer().await.status(), 200);
}
