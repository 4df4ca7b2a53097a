//! Polls of machines that a rollout waits for.

use std::time::Duration;

use forewarn_lifecycle::{Command, HealthGate, HostId, HostWork, RolloutId, RolloutTerms, Standing};
use forewarn_metadata::{ControlPlane as _, PollDuty};
use forewarn_server::ClockCommand;
use forewarn_types::ClusterId;

use crate::metadata::support::{NEWEST, TestServer, WEB_0, WEB_1, start_server};

fn duty(server: &TestServer, machine: &str) -> PollDuty {
    server.caller(machine).slot.read().duty.clone()
}

fn standing(server: &TestServer) -> Standing {
    let snapshot = server.control.snapshot();
    let state = snapshot.cluster(ClusterId::DEFAULT, server.control.now()).expect("the default cluster");
    state.cluster.rollout(RolloutId(0)).expect("it has not ended").standing
}

/// A rollout over two hosts, after the first group. All machines have polled after its announcement.
async fn worked_on(health: HealthGate) -> TestServer {
    let server = start_server().await;
    server.enrol_all().await;
    let terms = RolloutTerms { health, ..RolloutTerms::default() };
    let hosts = vec![HostId(0), HostId(1)];
    server.submit(Command::Rollout { work: HostWork::Restart.into(), hosts, terms }).await;
    for machine in [WEB_0, WEB_1] {
        assert_eq!(server.get(machine, NEWEST).await.short().0, 200);
    }
    server.control.drive(ClockCommand::Advance(Duration::from_mins(16))).await.unwrap();
    server
}

/// promise: R2
#[tokio::test]
async fn only_polls_of_awaited_machines_are_reported() {
    let server = worked_on(HealthGate::Machines).await;
    assert_eq!(standing(&server), Standing::Unwell);
    // web_10 has not polled since the announcement.
    assert_eq!(duty(&server, "web/web_0"), PollDuty::Report([WEB_0].into()));
    assert_eq!(duty(&server, "solo"), PollDuty::None, "another tenant polls as always");
    server.get(WEB_1, NEWEST).await;
    assert_eq!(standing(&server), Standing::Unwell, "another machine of the tenant has polled");
    server.get(WEB_0, NEWEST).await;
    assert!(matches!(standing(&server), Standing::Works(_)));
    assert_eq!(duty(&server, "web/web_0"), PollDuty::Report([WEB_1].into()), "the next group is announced");
    server.get(WEB_1, NEWEST).await;
    assert_eq!(duty(&server, "web/web_0"), PollDuty::None);
}

/// promise: R2
#[tokio::test]
async fn a_rollout_with_another_gate_has_no_poll_reported() {
    for health in [HealthGate::Awaited, HealthGate::Ignored] {
        let server = worked_on(health).await;
        assert!(matches!(standing(&server), Standing::Works(_)), "{health:?}");
        assert_eq!(duty(&server, "web/web_0"), PollDuty::None);
    }
}
