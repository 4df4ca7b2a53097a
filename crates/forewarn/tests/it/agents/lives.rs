//! Agents, machines and servers that end and begin again: each event is handled once, and what was done is undone.

use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::AgentSettings;

/// promise: A2
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_agent_that_was_killed_goes_on_where_it_was() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let settings = AgentSettings::default()
        .hook("first", "scheduled", "order = 10\ncommand = [NOTE]\nundo = [NOTE]")
        .hook("gate", "scheduled", "order = 20\ncommand = [\"DIR/gate\"]")
        .noting();
    let world = place.prepare(&[("solo", settings)]);
    let agent = world.agent("solo");
    agent.script("gate", "#!/bin/sh\necho gate >> DIR/did\nuntil [ -e DIR/go ]; do sleep 0.05; done\n");
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_run("gate");
    agent.kill();
    assert_eq!(world.status(&reboot), "Scheduled");
    agent.start();
    forewarn_testkit::wait_until("the hook that was cut off is run again", || {
        (agent.times("gate") == 2).then_some(())
    });
    assert_eq!(agent.times("scheduled first Reboot"), 1, "what was done is not done again");
    agent.touch("go");
    world.is(&reboot, "Started");
    agent.has_kept("started", "note-started");
    // Once more, while the event is under way.
    agent.kill();
    agent.start();
    world.is_settled();
    world.advance("1m");
    agent.has_run("undo first Reboot");
    assert_eq!(
        agent.did(),
        [
            "scheduled first Reboot",
            "gate",
            "gate",
            "started note-started Reboot",
            "completed note-completed Reboot",
            "undo first Reboot"
        ]
    );
    assert_eq!(world.approvers(&reboot), ["machine solo/solo"]);
    assert_eq!(world.start_requests(), 1);
    // Nothing is left to do in a third life.
    agent.stop();
    agent.start();
    world.is_settled();
    assert_eq!(agent.did().len(), 6);
}

/// promise: A2
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn what_was_done_is_undone_after_the_reboot_itself() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining());
    let agent = world.agent("solo");
    let reboot = world.restart("solo");
    agent.has_kept("started", "note-started");
    // The machine goes down, and comes back when all is over.
    agent.kill();
    world.advance("1m");
    world.is(&reboot, "gone");
    agent.start();
    agent.has_run("undo drain Reboot");
    agent.is_answered_ready("200");
    agent.did_everything_once("Reboot");
}

/// promise: A6
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_agent_outlives_its_server() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining().table("approval", "policy = \"never\""));
    let agent = world.agent("solo");
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_run("scheduled drain Reboot");
    world.server_dies();
    // Nobody answers: that is no news of the event, and it is told.
    agent.has_said("endpoint does not respond, retrying");
    assert_eq!(agent.status_of("/healthz"), "200");
    assert_eq!(agent.status_of("/ready"), "503", "it stays drained");
    world.server_returns();
    world.is_settled();
    assert_eq!(world.status(&reboot), "Scheduled");
    assert_eq!(agent.did(), ["scheduled drain Reboot"], "no second time, and no undo");
    agent.has_said("endpoint responds again");
    world.run(&["event", "start", &reboot]);
    agent.has_run("started note-started Reboot");
    world.advance("1m");
    agent.has_run("undo drain Reboot");
}

/// promise: A3
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_event_that_has_started_before_the_agent_is_not_prepared_for() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining());
    let agent = world.agent("solo");
    agent.stop();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    world.run(&["event", "start", &reboot]);
    agent.start();
    agent.has_noted("too-late");
    agent.has_run("started note-started Reboot");
    world.advance("1m");
    agent.has_run("completed note-completed Reboot");
    assert!(agent.did().iter().all(|line| !line.contains("drain")), "{:?}", agent.did());
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn without_the_long_poll_time_is_felt_all_the_same() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining().line("long_poll = false"));
    let agent = world.agent("solo");
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_run("scheduled drain Reboot");
    world.is(&reboot, "Started");
    world.advance("1m");
    agent.has_run("undo drain Reboot");
    assert_eq!(world.metric("forewarn_metadata_waiting_requests"), "0");
}
