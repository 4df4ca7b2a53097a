//! Checkpoint and restore: the worker goes on from where it was, also after the reboot itself.

use std::fs;

use super::{file, script, settings};
use forewarn_testkit::agents::Agent;
use forewarn_testkit::agents::Units;
use forewarn_testkit::agents::{AgentNetwork, RunningAgents};
use forewarn_testkit::wait_until;

/// A machine with a worker in it, whose program is a little other.
fn worker<'a>(world: &'a RunningAgents<'a>, other: impl Fn(String) -> String) -> (&'a Agent<'a>, Units<'a>) {
    let agent = world.agent("solo");
    let units = super::units(agent);
    fs::create_dir(agent.file("worker")).unwrap();
    agent.script("lib/checkpoint", &file("checkpoint-and-restore", "checkpoint"));
    units.add("worker.service", &other(fs::read_to_string(script("worker")).unwrap()));
    (agent, units)
}

/// From where the worker was started, once it was for the second time.
fn starts(agent: &Agent<'_>) -> String {
    wait_until("the worker says from where", || {
        let starts = fs::read_to_string(agent.file("worker/starts")).ok()?;
        (starts.lines().count() == 2).then_some(starts)
    })
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_worker_goes_on_from_its_checkpoint_after_the_reboot() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("checkpoint-and-restore"))]);
    let (agent, units) = worker(&world, |text| text);
    units.systemctl(&["start", "worker.service"]);
    agent.start();
    world.is_settled();
    let reboot = world.restart("solo");
    // The work is safe and the worker stopped before the approval was given.
    let saved: u32 = fs::read_to_string(agent.file("worker/checkpoint")).unwrap().trim().parse().unwrap();
    assert!(!units.runs("worker.service"));
    // The machine goes down and comes back.
    agent.kill();
    world.advance("1m");
    world.is(&reboot, "gone");
    agent.start();
    wait_until("the worker goes on", || units.runs("worker.service").then_some(()));
    let starts = starts(agent);
    assert_eq!(starts, format!("from 0\nfrom {saved}\n"));
    agent.is_answered_ready("200");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_worker_that_writes_no_checkpoint_goes_on_from_the_one_before() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let impatient = settings("checkpoint-and-restore").changed("limit = \"10m\"", "limit = \"2s\"");
    let world = place.prepare(&[("solo", impatient)]);
    let (agent, units) = worker(&world, |text| text.replace("trap 'exit 0' TERM", "trap '' USR1"));
    fs::write(agent.file("worker/checkpoint"), "41\n").unwrap();
    units.stops_by("worker.service", "KILL");
    units.systemctl(&["start", "worker.service"]);
    agent.has_file("worker/starts");
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_said("this machine does not approve the event");
    assert_eq!(world.status(&reboot), "Scheduled");
    assert!(units.runs("worker.service"), "it has not been stopped");
    // The notice is over, and the machine goes down with everything in it.
    world.advance("15m");
    world.is(&reboot, "Started");
    agent.kill();
    units.systemctl(&["stop", "worker.service"]);
    world.advance("1m");
    world.is(&reboot, "gone");
    agent.start();
    let starts = starts(agent);
    assert_eq!(starts, "from 41\nfrom 41\n");
    agent.is_answered_ready("200");
    let left = ["before", "stopped"].map(|end| agent.file(&format!("worker/checkpoint.{end}")).exists());
    assert_eq!(left, [false; 2], "nothing is left behind");
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_worker_that_did_not_run_is_not_started() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("checkpoint-and-restore"))]);
    let (agent, units) = worker(&world, |text| text);
    agent.start();
    world.is_settled();
    world.restart("solo");
    world.advance("1m");
    agent.is_answered_ready("200");
    assert!(units.told().is_empty(), "{:?}", units.told());
    // A pause is approved at once.
    let freeze = world.announce(&["host", "update", "h5"]);
    world.is(&freeze, "Started");
    assert_eq!(world.approvers(&freeze).len(), 1);
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_worker_whose_state_is_unknown_holds_the_event() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("checkpoint-and-restore"))]);
    let (agent, units) = worker(&world, |text| text);
    units.systemctl(&["start", "worker.service"]);
    fs::write(agent.file("no-bus"), "").unwrap();
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_said("unknown state of worker.service: no answer from systemctl");
    agent.has_said("this machine does not approve the event");
    assert_eq!(world.status(&reboot), "Scheduled");
    assert!(units.runs("worker.service"));
}
