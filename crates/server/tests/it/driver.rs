//! The driver, its clock and its published documents, without a network.

use std::time::Duration;

use forewarn_control::ControlError;
use forewarn_lifecycle::*;
use forewarn_server::ClockCommand;
use forewarn_server::{Clock, ControlHandle, Speed};

/// One host, one enrolled machine, a frozen clock.
async fn solo() -> (ControlHandle, MachineId) {
    let control =
        ControlHandle::simulated(Seed([5; 16]), Clock::virtual_at(Timestamp::from_millis(0), Speed(0)));
    let name = |text| Name::new(text).expect("a name");
    control
        .submit(Command::AdmitHost { name: name("h1"), zone: None, capacity: Size::NONE })
        .await
        .expect("a new host");
    let placement = Placement {
        host: HostId(0),
        update_domain: UpdateDomain(0),
        fault_domain: FaultDomain(0),
        size: Size::NONE,
    };
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let admit = Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy };
    control.submit(admit).await.expect("a new machine");
    control.submit(Command::Enrol(TenantId(0))).await.expect("a tenant");
    (control, MachineId(0))
}

fn phases(control: &ControlHandle) -> Vec<&'static str> {
    let look = control.look(|state| {
        let events = state.cluster.tenant(TenantId(0)).expect("a tenant").events();
        events.iter().map(|event| if event.is_scheduled() { "Scheduled" } else { "Started" }).collect()
    });
    look.expect("a cluster")
}

/// promise: N4
#[tokio::test]
async fn a_frozen_clock_moves_when_it_is_driven_and_stops_at_everything_on_the_way() {
    let (control, solo) = solo().await;
    control.submit(Command::Restart(solo)).await.expect("announced");
    assert_eq!(phases(&control), ["Scheduled"]);
    control.drive(ClockCommand::Advance(Duration::from_secs(899))).await.expect("a virtual clock");
    assert_eq!(phases(&control), ["Scheduled"]);
    let now = control.drive(ClockCommand::Advance(Duration::from_secs(1))).await.expect("a virtual clock");
    assert_eq!((now.wall.seconds(), phases(&control)), (900, vec!["Started"]));
    control.drive(ClockCommand::Advance(Duration::from_secs(3_600))).await.expect("a virtual clock");
    assert!(phases(&control).is_empty());
    let boots = control.look(move |state| state.cluster.machine(solo).map(|machine| machine.boots));
    assert_eq!(boots, Ok(Some(2)));
}

/// promise: N4
#[tokio::test]
async fn next_stops_where_a_document_changes() {
    let (control, solo) = solo().await;
    control.submit(Command::Restart(solo)).await.expect("announced");
    for seconds in [900, 930] {
        let now = control.drive(ClockCommand::Next { within: None }).await.expect("a virtual clock");
        assert_eq!(now.wall.seconds(), seconds);
    }
    assert!(phases(&control).is_empty());
}

#[tokio::test]
async fn a_clock_that_runs_fast_lets_a_notice_pass_quickly() {
    let (control, solo) = solo().await;
    control.submit(Command::Restart(solo)).await.expect("announced");
    control.drive(ClockCommand::Run(Speed(1_000_000))).await.expect("a virtual clock");
    while !phases(&control).is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_refusal_comes_back_and_a_real_clock_is_not_driven() {
    let (control, _) = solo().await;
    let refused = control.submit(Command::Restart(MachineId(9))).await;
    assert_eq!(refused, Err(ControlError::Refused(Refusal::NoSuchMachine)));
    let real = ControlHandle::simulated(Seed([5; 16]), Clock::real(Steady::START));
    assert_eq!(real.drive(ClockCommand::Next { within: None }).await, Err(ControlError::RealClock));
}
