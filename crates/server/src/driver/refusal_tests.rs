//! Requests that are refused because of a decision that is not durable yet.

use forewarn_control::ControlError;
use forewarn_lifecycle::{Command, Name, Refusal, Size};

use super::tests::{SlowDisk, driver_on, start};
use crate::clock::{Clock, Speed};

fn admit(name: &str) -> Command {
    Command::AdmitHost { name: Name::new(name).unwrap(), zone: None, capacity: Size::NONE }
}

fn is_refused<T>(answer: &Result<T, ControlError>) -> bool {
    matches!(answer, Err(ControlError::Refused(Refusal::NameTaken(_))))
}

/// promise: C1
#[tokio::test]
async fn a_refusal_waits_for_the_decision_that_it_depends_on() {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let disk = SlowDisk::new(clock.clone());
    let (mut driver, _own) = driver_on(clock.clone(), disk.clone());
    let (mut first, mut second) = (driver.submit(admit("h1")).await, driver.submit(admit("h1")).await);
    assert!(second.try_recv().is_err(), "the first one is not durable");
    driver.settle(clock.now()).await;
    assert!(first.try_recv().unwrap().is_ok() && is_refused(&second.try_recv().unwrap()));
    // Nothing is written: a refusal comes at once.
    assert!(is_refused(&driver.submit(admit("h1")).await.try_recv().unwrap()));
    disk.fill();
    let (mut lost, mut after) = (driver.submit(admit("h2")).await, driver.submit(admit("h2")).await);
    driver.settle(clock.now()).await;
    for answer in [&mut lost, &mut after] {
        assert_eq!(answer.try_recv().unwrap(), Err(ControlError::Unavailable), "there is no h2");
    }
}
