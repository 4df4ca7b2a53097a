//! When a machine last asked, and what it was shown.

use std::time::Duration;

use forewarn_control::NamedCommand;
use forewarn_explain::Poll;
use forewarn_imds::Edition;
use forewarn_lifecycle::MachineId;
use forewarn_server::ClockCommand;

use crate::support::{NEWEST, SOLO, WEB_0, WEB_1, World, get, restarting, world};

async fn last(world: &World, machine: MachineId) -> Option<Poll> {
    world.engine.look(move |state| state.polls.of(machine)).unwrap()
}

#[tokio::test]
async fn each_poll_is_noted_with_its_edition_and_what_was_shown() {
    let (world, _) = restarting().await;
    assert_eq!(last(&world, WEB_0).await, None);
    let mut line = world.connect(WEB_0).await;
    // From the third on they are answered from memory.
    for minute in 0..4 {
        world.engine.drive(ClockCommand::Advance(Duration::from_mins(1))).await.unwrap();
        line.send(&get(NEWEST)).await;
        assert_eq!(line.answer().await.status(), 200);
        let poll = last(&world, WEB_0).await.unwrap();
        assert_eq!(poll.at.0, world.engine.clock().now().wall, "minute {minute}");
        assert_eq!(poll.edition, Edition::V2020_07_01);
    }
    let before = last(&world, WEB_0).await.unwrap();
    world.engine.order(vec![NamedCommand::Restart { machine: "web_1".to_owned() }]).await.unwrap();
    assert_eq!(last(&world, WEB_0).await, Some(before), "nobody has been shown the other one");
    line.send(&get(NEWEST)).await;
    assert!(line.answer().await.body.contains("web_1"));
    assert!(last(&world, WEB_0).await.unwrap().told > before.told, "the clock stands, and yet it shows");
    world.get(WEB_1, "/metadata/scheduledevents?api-version=2017-03-01").await;
    assert_eq!(last(&world, WEB_1).await.unwrap().edition, Edition::V2017_03_01);
}

#[tokio::test]
async fn a_machine_that_is_described_anew_has_still_asked_and_other_requests_do_not_count() {
    let world = world().await;
    world.get(SOLO, "/metadata/instance?api-version=2021-02-01").await;
    world.get(SOLO, "/metadata/scheduledevents?api-version=latest").await;
    assert_eq!(last(&world, SOLO).await, None);
    world.get(SOLO, NEWEST).await;
    let poll = last(&world, SOLO).await;
    assert!(poll.is_some());
    let tags = Some([("role".to_owned(), "front".to_owned())].into());
    let describe = NamedCommand::Describe { machine: "solo".to_owned(), addresses: None, tags };
    world.engine.order(vec![describe]).await.unwrap();
    assert_eq!(last(&world, SOLO).await, poll);
}
