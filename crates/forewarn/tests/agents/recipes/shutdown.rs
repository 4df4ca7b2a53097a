//! Graceful shutdown of a unit: stopped before the approval, started when all is over; one that did not run stays as it was.

use super::{Units, settings};
use crate::world::Place;

/// Takes its time to end.
const SHOP: &str =
    "#!/bin/sh\ntrap 'sleep 0.3; echo closed >> DIR/did; exit 0' TERM\nwhile :; do sleep 0.05; done\n";

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_unit_is_stopped_before_the_approval_and_started_afterwards() {
    let place = Place::of(&["solo"]);
    let world = place.prepare(&[("solo", settings("graceful-shutdown"))]);
    let agent = world.agent("solo");
    let units = Units::new(agent);
    units.add("shop.service", SHOP);
    units.systemctl(&["start", "shop.service"]);
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    world.is(&reboot, "Started");
    assert_eq!(agent.did(), ["closed"], "it has ended by itself before the approval was given");
    assert!(!units.runs("shop.service"));
    // Also over the reboot itself.
    agent.kill();
    world.advance("1m");
    agent.start();
    crate::harness::until("the unit runs again", || units.runs("shop.service").then_some(()));
    let order = ["start", "mask", "stop", "unmask", "start"].map(|verb| format!("{verb} shop.service"));
    assert_eq!(units.told(), order);
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_unit_that_did_not_run_is_not_started() {
    let place = Place::of(&["solo"]);
    let world = place.prepare(&[("solo", settings("graceful-shutdown"))]);
    let agent = world.agent("solo");
    let units = Units::new(agent);
    units.add("shop.service", SHOP);
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    world.is(&reboot, "Started");
    world.advance("1m");
    agent.is_answered_ready("200");
    assert!(units.told().iter().all(|order| !order.starts_with("start")), "{:?}", units.told());
    assert!(!units.runs("shop.service"));
}
