//! Hooks that do not do what they should: they end in time, and what follows is as the settings say.

use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::AgentSettings;

/// A hook that never ends by itself, starts a process that does not either, and takes no notice of SIGTERM.
const STUBBORN: &str = "#!/bin/sh\ntrap '' TERM\necho $$ > DIR/pid.new\nsleep 1000 &\necho $! >> DIR/pid.new\nmv DIR/pid.new DIR/pids\nwhile :; do wait; sleep 0.1; done\n";

fn hanging() -> AgentSettings {
    AgentSettings::default()
        .hook("first", "scheduled", "order = 10\ncommand = [NOTE]")
        .hook("hang", "scheduled", "order = 20\nlimit = \"5s\"\ncommand = [\"DIR/hang\"]")
        .hook("last", "scheduled", "order = 30\ncommand = [NOTE]")
        .noting()
}

/// No process of a hook is left.
fn are_gone(pids: &str) {
    for pid in pids.split_whitespace() {
        forewarn_testkit::wait_until("the processes of the hook are gone", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // One that has ended stays until whoever started it has looked.
            (status.is_empty() || status.contains(") Z ")).then_some(())
        });
    }
}

/// promise: A4
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_hook_that_hangs_is_ended_and_nothing_is_approved() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", hanging())]);
    let agent = world.agent("solo");
    agent.script("hang", STUBBORN);
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    let failed = agent.has_noted("hook-failed");
    assert_eq!((&failed["hook"], &failed["phase"]), (&"hang".into(), &"scheduled".into()));
    agent.has_noted("held");
    are_gone(&std::fs::read_to_string(agent.file("pids")).unwrap());
    assert_eq!(world.status(&reboot), "Scheduled");
    // Without an approval it starts when its notice is over, and the agent is there for it.
    world.advance("15m");
    agent.has_run("started note-started Reboot");
    world.advance("1m");
    agent.has_run("completed note-completed Reboot");
    assert!(world.approvers(&reboot).is_empty());
    assert_eq!(world.start_requests(), 0);
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_hook_that_hangs_is_ended_and_the_rest_goes_on_if_wanted() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", hanging().table("approval", "on_failure = \"approve\""))]);
    let agent = world.agent("solo");
    agent.script("hang", STUBBORN);
    agent.start();
    world.is_settled();
    let reboot = world.restart("solo");
    assert_eq!(world.approvers(&reboot), ["machine solo/solo"]);
    agent.has_run("scheduled last Reboot");
    assert_eq!(agent.did()[0], "scheduled first Reboot");
}

/// promise: A4
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn scripts_in_directories_are_run_by_number_and_hear_of_the_event() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", AgentSettings::default())]);
    let agent = world.agent("solo");
    agent.script("hooks/scheduled.d/20-second", "#!/bin/sh\necho second >> DIR/did\n");
    agent.script(
        "hooks/scheduled.d/10-first",
        "#!/bin/sh\ncat > DIR/event.json\nenv > DIR/environment\necho first >> DIR/did\n",
    );
    agent.script("hooks/undo.d/10-back", "#!/bin/sh\necho back >> DIR/did\n");
    agent.start();
    world.is_settled();
    let reboot = world.restart("solo");
    world.advance("1m");
    agent.has_run("back");
    assert_eq!(agent.did(), ["first", "second", "back"]);
    let event: serde_json::Value =
        serde_json::from_slice(&std::fs::read(agent.file("event.json")).unwrap()).unwrap();
    assert_eq!(event["EventId"], reboot.as_str(), "{event}");
    let environment = std::fs::read_to_string(agent.file("environment")).unwrap();
    for line in [
        &format!("EVENT_ID={reboot}"),
        "EVENT_TYPE=Reboot",
        "EVENT_STATUS=Scheduled",
        "EVENT_SOURCE=User",
        "EVENT_RESOURCES=solo",
        "EVENT_RESOURCETYPE=VirtualMachine",
        "EVENT_DURATION=-1",
        "EVENT_LIVE_MIGRATION=no",
        "FOREWARN_PHASE=scheduled",
        "FOREWARN_NAME=solo",
    ] {
        assert!(environment.lines().any(|set| set == line), "not set: {line}\n{environment}");
    }
}
