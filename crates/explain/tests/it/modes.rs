//! Explanations of events that a host in maintenance mode causes.

use forewarn_lifecycle::{MachineId, Target};

use crate::tale::*;

/// promise: C6
#[test]
fn an_event_of_a_host_that_enters_maintenance_mode_says_how_many_machines_have_left() {
    let mut tale = Tale::new();
    let web = tale.enrol("web");
    tale.enrol("solo");
    let outcome =
        tale.ask("socket", r#"{"command":"enter_maintenance","host":"h1","move":"stop","work":"kernel"}"#);
    let id = outcome.events.iter().find(|event| event.tenant == "web").unwrap().id.clone();
    let told = tale.event(&id).unwrap();
    assert_eq!(told.why, "maintenance mode of h1: step 1 of rollout 0");
    let entering = "host h1 is entering maintenance mode: 0 of 2 machines have left or are off; \
                    update of the host (kernel): not done yet; waits for approval or for the end of the notice";
    assert_eq!(told.blockers[0], entering);
    assert!(told.machines[0].text.starts_with("is stopped until it is started again"), "{told:?}");

    tale.ask("socket", r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    tale.ask("socket", r#"{"command":"approve","tenant":"web","events":"all"}"#);
    let work = tale.town.rules.maintenances().next().unwrap().plan.id;
    let solo = tale.town.rules.machines().find(|(_, machine)| machine.tenant != web).unwrap().0;
    assert_ne!(solo, MachineId(WEB_0));
    let report = forewarn_lifecycle::Report::Done;
    let target = Target::Machine(solo);
    tale.submit("forewarn", &forewarn_lifecycle::Command::Complete { maintenance: work, target, report });
    let told = tale.event(&id).unwrap();
    assert!(
        told.blockers[0]
            .starts_with("host h1 is entering maintenance mode: 1 of 2 machines have left or are off"),
        "{:?}",
        told.blockers
    );
    assert!(told.next[0].starts_with("1 machine is being worked on"), "{:?}", told.next);
}
