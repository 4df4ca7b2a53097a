//! The last poll of a machine.

use std::time::Duration;

use forewarn_control::NamedCommand;
use forewarn_explain::Poll;
use forewarn_imds::Edition;
use forewarn_lifecycle::MachineId;
use forewarn_server::ClockCommand;

use crate::metadata::support::{NEWEST, SOLO, TestServer, WEB_0, WEB_1, get, restarting, start_server};

async fn last(server: &TestServer, machine: MachineId) -> Option<Poll> {
    server.control.look(move |state| state.polls.of(machine)).unwrap()
}

/// promise: C6
#[tokio::test]
async fn each_poll_is_noted_with_its_edition_and_what_was_shown() {
    let (server, _) = restarting().await;
    assert_eq!(last(&server, WEB_0).await, None);
    let mut connection = server.connect(WEB_0).await;
    // From the third on they are cached.
    for minute in 0..4 {
        server.control.drive(ClockCommand::Advance(Duration::from_mins(1))).await.unwrap();
        connection.send(&get(NEWEST)).await;
        assert_eq!(connection.answer().await.status(), 200);
        let poll = last(&server, WEB_0).await.unwrap();
        assert_eq!(poll.at.0, server.control.clock().now().wall, "minute {minute}");
        assert_eq!(poll.edition, Edition::V2020_07_01);
    }
    let before = last(&server, WEB_0).await.unwrap();
    server.control.run_commands(vec![NamedCommand::Restart { machine: "web_1".to_owned() }]).await.unwrap();
    assert_eq!(last(&server, WEB_0).await, Some(before), "no machine has read the other one");
    connection.send(&get(NEWEST)).await;
    assert!(connection.answer().await.body.contains("web_1"));
    assert!(
        last(&server, WEB_0).await.unwrap().last_entry > before.last_entry,
        "the clock stands, and yet it shows"
    );
    server.get(WEB_1, "/metadata/scheduledevents?api-version=2017-03-01").await;
    assert_eq!(last(&server, WEB_1).await.unwrap().edition, Edition::V2017_03_01);
}

/// promise: C6
#[tokio::test]
async fn a_machine_that_is_described_anew_has_still_asked_and_other_requests_do_not_count() {
    let server = start_server().await;
    server.get(SOLO, "/metadata/instance?api-version=2021-02-01").await;
    server.get(SOLO, "/metadata/scheduledevents?api-version=latest").await;
    assert_eq!(last(&server, SOLO).await, None);
    server.get(SOLO, NEWEST).await;
    let poll = last(&server, SOLO).await;
    assert!(poll.is_some());
    let tags = Some([("role".to_owned(), "front".to_owned())].into());
    let describe = NamedCommand::Describe { machine: "solo".to_owned(), addresses: None, tags };
    server.control.run_commands(vec![describe]).await.unwrap();
    assert_eq!(last(&server, SOLO).await, poll);
}
