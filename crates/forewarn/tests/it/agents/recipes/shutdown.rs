//! Graceful shutdown of a unit: stopped before the approval, started when all is over; one that did not run stays as it was.

use super::settings;
use forewarn_testkit::agents::Agent;
use forewarn_testkit::agents::AgentSettings;
use forewarn_testkit::agents::Units;
use forewarn_testkit::agents::{AgentNetwork, RunningAgents};
use forewarn_testkit::wait_until;

/// Takes its time to end.
const SHOP: &str =
    "#!/bin/sh\ntrap 'sleep 0.3; echo closed >> DIR/did; exit 0' TERM\nwhile :; do sleep 0.05; done\n";

/// A machine with a shop in it.
fn shop<'a>(world: &'a RunningAgents<'a>) -> (&'a Agent<'a>, Units<'a>) {
    let agent = world.agent("solo");
    let units = super::units(agent);
    units.add("shop.service", SHOP);
    (agent, units)
}

/// As the recipe says for units of packages.
fn masking() -> AgentSettings {
    let stop = "stop = [\"shop.service\"]";
    settings("graceful-shutdown").changed(stop, &format!("{stop}, mask = true"))
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_unit_is_stopped_before_the_approval_and_started_afterwards() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("graceful-shutdown"))]);
    let (agent, units) = shop(&world);
    units.is_in_etc("shop.service");
    units.systemctl(&["start", "shop.service"]);
    agent.start();
    world.is_settled();
    world.restart("solo");
    assert_eq!(agent.did(), ["closed"], "it has ended by itself before the approval was given");
    assert!(!units.runs("shop.service"));
    // Also over the reboot itself.
    agent.kill();
    world.advance("1m");
    agent.start();
    wait_until("the unit runs again", || units.runs("shop.service").then_some(()));
    assert_eq!(units.told(), ["start", "stop", "start"].map(|verb| format!("{verb} shop.service")));
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn with_a_mask_nothing_starts_a_unit_in_between() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", masking())]);
    let (agent, units) = shop(&world);
    units.systemctl(&["start", "shop.service"]);
    agent.start();
    world.is_settled();
    world.restart("solo");
    let systemctl = agent.file("bin/systemctl").display().to_string();
    let answer = agent.namespace().shell(&format!("{systemctl} start shop.service || echo masked"));
    assert_eq!(answer.trim(), "masked");
    agent.kill();
    world.advance("1m");
    agent.start();
    wait_until("the unit runs again", || units.runs("shop.service").then_some(()));
    let order = ["start", "mask", "stop", "start", "unmask", "start"];
    assert_eq!(units.told(), order.map(|verb| format!("{verb} shop.service")));
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_unit_of_the_owner_cannot_be_masked() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", masking())]);
    let (agent, units) = shop(&world);
    units.is_in_etc("shop.service");
    units.systemctl(&["start", "shop.service"]);
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_said("this machine does not approve the event");
    assert!(agent.log().contains("File /etc/systemd/system/shop.service already exists"), "it says why");
    assert_eq!(world.status(&reboot), "Scheduled");
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_unit_that_did_not_run_is_not_started() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("graceful-shutdown"))]);
    let (agent, units) = shop(&world);
    agent.start();
    world.is_settled();
    world.restart("solo");
    world.advance("1m");
    agent.is_answered_ready("200");
    assert!(units.told().iter().all(|order| !order.starts_with("start")), "{:?}", units.told());
    assert!(!units.runs("shop.service"));
}
