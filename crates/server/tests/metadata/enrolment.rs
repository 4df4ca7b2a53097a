//! The first request of a tenant.

use std::time::Duration;

use forewarn_metadata::{FirstAnswer, Identity, Settings};

use crate::support::{NEWEST, WEB_0, WEB_1, World, get, post, world, world_with};

fn is_enrolled(world: &World) -> bool {
    world.caller("web/web_0").slot.read().enrolled
}

async fn world_answering(first_answer: FirstAnswer) -> World {
    world_with(Settings { first_answer, ..Settings::default() }, Identity::Address).await
}

#[tokio::test]
async fn the_first_valid_request_of_any_machine_enrols_its_tenant_and_no_other() {
    for request in [
        get(NEWEST),
        get("/metadata/scheduledevents?api-version=2017-03-01"),
        post("not even JSON"),
        format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\nContent-Length: 999999\r\n\r\n"),
    ] {
        let world = world().await;
        assert!(!is_enrolled(&world));
        world.say(WEB_1, &request).await;
        assert!(is_enrolled(&world), "{request}");
        assert!(!world.caller("solo").slot.read().enrolled);
    }
}

#[tokio::test]
async fn a_refused_request_and_instance_metadata_enrol_nobody() {
    let world = world().await;
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
        world.say(WEB_0, &request).await;
        assert!(!is_enrolled(&world), "{request}");
    }
}

#[tokio::test]
async fn the_first_answer_may_be_empty() {
    let world = world_answering(FirstAnswer::Empty).await;
    let answer = world.get(WEB_0, NEWEST).await;
    assert_eq!(answer.short(), (200, ""));
    assert_eq!(answer.header("Content-Length"), Some("0"));
    assert!(is_enrolled(&world));
    assert_eq!(world.get(WEB_0, NEWEST).await.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
}

#[tokio::test]
async fn the_first_answer_may_take_two_minutes_and_enrols_even_if_nobody_waits() {
    let world = world_answering(FirstAnswer::Delay(Duration::from_mins(2))).await;
    let mut line = world.connect(WEB_0).await;
    line.send(&get(NEWEST)).await;
    drop(line);
    while !is_enrolled(&world) {
        tokio::task::yield_now().await;
    }
    let world = world_answering(FirstAnswer::Delay(Duration::from_mins(2))).await;
    let mut line = world.connect(WEB_0).await;
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    line.send(&get(NEWEST)).await;
    assert_eq!(line.answer().await.body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
    assert_eq!(start.elapsed().as_secs(), 120);
}
