//! One machine at a time: which events are prepared for, and when that ends.

use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::AgentSettings;

const DRAINED: &str = "scheduled drain Reboot";

/// promise: A3
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_freeze_under_the_threshold_is_ignored() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let rule = "when = { types = [\"Freeze\"], shorter_than = \"10s\" }\ntreatment = \"ignore\"";
    let world = place.begin(&AgentSettings::draining().rule(rule));
    // Nine seconds are announced.
    let freeze = world.announce(&["host", "update", "h5"]);
    world.agent("solo").has_noted("ignored");
    world.agent("solo").is_answered_ready("200");
    world.advance("15m");
    world.advance("1m");
    world.is(&freeze, "gone");
    world.agent("solo").has_noted("completed");
    assert!(world.agent("solo").did().is_empty(), "{:?}", world.agent("solo").did());
    assert_eq!(world.start_requests(), 0);
    // The next one is none of the ignored.
    world.announce(&["vm", "restart", "solo"]);
    world.agent("solo").has_run(DRAINED);
}

/// promise: A3
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_live_migration_is_told_from_other_freezes() {
    let place = AgentNetwork::of(crate::program(), &["solo", "web_0"]);
    let settings = AgentSettings::default()
        .hook("move", "scheduled", "when = { types = [\"Freeze\"], live_migration = true }\ncommand = [NOTE]")
        .hook(
            "pause",
            "scheduled",
            "when = { types = [\"Freeze\"], live_migration = false }\ncommand = [NOTE]",
        );
    let world = place.begin(&settings);
    let migration = world.announce(&["host", "migrate", "h5"]);
    let update = world.announce(&["host", "update", "h2"]);
    world.agent("solo").has_run("scheduled move Freeze");
    world.agent("web_0").has_run("scheduled pause Freeze");
    for (event, approver) in [(&migration, "machine solo/solo"), (&update, "machine web/web_0")] {
        world.is(event, "Started");
        assert_eq!(world.approvers(event), [approver]);
    }
    assert_eq!(world.agent("solo").did().len() + world.agent("web_0").did().len(), 2);
}

/// promise: A4
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_eviction_leaves_hooks_what_is_left_of_thirty_seconds() {
    let place = AgentNetwork::of(crate::program(), &["spot_0"]);
    // It may take five minutes, and would take a minute: it is ended before the notice is.
    let settings = AgentSettings::default()
        .line("spare = \"20s\"")
        .hook("save", "scheduled", "limit = \"5m\"\norder = 10\ncommand = [\"DIR/left\"]")
        .hook("slow", "scheduled", "limit = \"5m\"\norder = 20\ncommand = [\"/bin/sleep\", \"60\"]")
        .table("approval", "on_failure = \"approve\"")
        .noting();
    let world = place.prepare(&[("spot_0", settings)]);
    let agent = world.agent("spot_0");
    agent.script(
        "left",
        "#!/bin/sh\necho \"$FOREWARN_SECONDS_LEFT\" > DIR/left.new && mv DIR/left.new DIR/seconds\n",
    );
    agent.start();
    world.is_settled();
    let eviction = world.announce(&["vm", "evict", "spot_0"]);
    agent.has_file("seconds");
    let left: u32 = std::fs::read_to_string(agent.file("seconds")).unwrap().trim().parse().unwrap();
    assert!((1..=10).contains(&left), "{left} seconds left of thirty, with twenty to spare");
    let failed = agent.has_noted("hook-failed");
    assert_eq!(failed["hook"], "slow");
    world.is(&eviction, "Started");
    assert_eq!(world.approvers(&eviction), ["machine spot_0/spot_0"]);
    agent.has_run("started note-started Preempt");
}

/// promise: A3, A5
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_instance_approves_its_own_deletion_and_no_other() {
    let place = AgentNetwork::of(crate::program(), &["web_0", "web_1"]);
    let slow = AgentSettings::default().hook("drain", "scheduled", "command = [\"DIR/wait\"]");
    let world = place.prepare(&[("web_0", AgentSettings::draining()), ("web_1", slow)]);
    world.agent("web_1").script("wait", "#!/bin/sh\nuntil [ -e DIR/go ]; do sleep 0.05; done\n");
    world.agents().for_each(forewarn_testkit::agents::Agent::start);
    world.is_settled();
    let second = world.announce(&["vm", "delete", "web_1"]);
    world.agent("web_1").has_noted("preparing");
    let first = world.announce(&["vm", "delete", "web_0"]);
    world.agent("web_0").has_run("scheduled drain Terminate");
    world.agent("web_0").has_noted("approved");
    assert_eq!(world.approvers(&first), ["machine web/web_0"]);
    assert!(world.approvers(&second).is_empty());
    // Deletions of one scale set wait for each other.
    assert_eq!(
        (world.status(&first), world.status(&second)),
        ("Scheduled".to_owned(), "Scheduled".to_owned())
    );
    world.agent("web_1").touch("go");
    world.is(&second, "Started");
    world.is(&first, "Started");
    assert_eq!(world.approvers(&second), ["machine web/web_1"]);
    assert_eq!(world.approvers(&first), ["machine web/web_0"]);
    assert_eq!(world.start_requests(), 2);
}

/// promise: A2
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_cancelled_event_is_undone_at_once() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining().table("approval", "policy = \"never\""));
    let reboot = world.announce(&["vm", "restart", "solo"]);
    let agent = world.agent("solo");
    agent.has_run(DRAINED);
    agent.has_noted("ready");
    agent.is_answered_ready("503");
    world.run(&["event", "cancel", &reboot]);
    agent.has_run("undo drain Reboot");
    agent.is_answered_ready("200");
    assert_eq!(agent.did(), [DRAINED, "cancelled note-cancelled Reboot", "undo drain Reboot"]);
    assert_eq!(world.start_requests(), 0);
}

/// promise: A2
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_machine_stays_drained_until_both_events_are_over() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining().table("approval", "policy = \"never\""));
    let reboot = world.announce(&["vm", "restart", "solo"]);
    let agent = world.agent("solo");
    agent.has_run(DRAINED);
    let freeze = world.announce(&["host", "update", "h5"]);
    agent.has_run("scheduled drain Freeze");
    world.run(&["event", "start", &reboot]);
    agent.has_run("started note-started Reboot");
    world.advance("1m");
    world.is(&reboot, "gone");
    agent.has_run("completed note-completed Reboot");
    // The first is over, the second is not: nothing is undone, and no load comes.
    world.is_settled();
    assert_eq!(world.status(&freeze), "Scheduled");
    agent.is_answered_ready("503");
    assert!(agent.did().iter().all(|line| !line.starts_with("undo")), "{:?}", agent.did());
    world.run(&["event", "start", &freeze]);
    agent.has_run("started note-started Freeze");
    world.advance("1m");
    world.is(&freeze, "gone");
    agent.has_run("undo drain Freeze");
    agent.is_answered_ready("200");
    assert_eq!(
        agent.did().iter().filter(|line| line.starts_with("undo")).count(),
        1,
        "undone once, after the last"
    );
}
