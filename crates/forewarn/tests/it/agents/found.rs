//! Where agents find what they need: an old endpoint, peers by the list of members; and what their commands say beside them.

use std::fs;

use forewarn_testkit::agents::Agent;
use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::AgentSettings;
use forewarn_testkit::agents::Beside;
use forewarn_testkit::wait_until;

/// promise: A3, A6
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_endpoint_that_knows_only_the_preview_will_do() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    // No source, no duration: what a rule asks for is not known, and this one wants to fit then.
    let rule = "when = { sources = [\"Platform\"], unknown = true }\ntreatment = \"prepare\"\napproval = \"when-done\"";
    let settings = AgentSettings::draining().rule(rule);
    let world = place.prepare_behind("127.0.0.1:1338", &[("solo", settings)]);
    let beside = Beside::new();
    let preview = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/preview.py");
    beside.run(place.network().host(), "python3", &[preview, "169.254.169.254:80", "127.0.0.1:1338"]);
    let agent = world.agent("solo");
    agent.start();
    agent.has_said("Scheduled Events enabled edition=\"2017-03-01\"");
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_run("scheduled drain Reboot");
    let seen = agent.has_noted("seen");
    // The document says `_solo`.
    assert_eq!((&seen["mine"], &seen["resources"][0]), (&true.into(), &"solo".into()));
    agent.has_run("started note-started Reboot");
    assert_eq!(world.approvers(&reboot), ["machine solo/solo"]);
    world.advance("1m");
    agent.has_run("undo drain Reboot");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn peers_find_each_other_by_the_list_of_members() {
    let machines = ["db_0", "db_1", "db_2"];
    let place = AgentNetwork::of(crate::program(), &machines);
    let names = Names::of(&place, &machines);
    let settings = AgentSettings::draining().table("approval", "policy = \"leader\"").table(
        "peers",
        "members = true\nsuffix = \".internal\"\nport = 9911\nkey_file = \"DIR/key\"\nsilence = \"wait\"",
    );
    let world = place.begin(&settings);
    let reboot = world.announce(&["host", "reboot", "h1"]);
    world.is(&reboot, "Started");
    assert_eq!((world.approvers(&reboot), world.start_requests()), (vec!["machine db/db_0".to_owned()], 1));
    world.agents().for_each(|agent| agent.has_run("started note-started Reboot"));
    drop(names);
}

/// What every machine finds in its `/etc/hosts`, for as long as the test lasts.
struct Names(Vec<std::path::PathBuf>);

impl Names {
    fn of(place: &AgentNetwork, machines: &[&str]) -> Self {
        let lines: Vec<_> =
            machines.iter().map(|name| format!("{} {name}.internal\n", place.address(name))).collect();
        let directories = (0..machines.len()).map(|number| {
            let directory = std::path::Path::new("/etc/netns").join(place.network().machine(number).name());
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("hosts"), format!("127.0.0.1 localhost\n{}", lines.concat())).unwrap();
            directory
        });
        Self(directories.collect())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for directory in &self.0 {
            if fs::remove_dir_all(directory).is_err() {
                eprintln!("left behind: {}", directory.display());
            }
        }
    }
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn commands_tell_what_a_running_agent_sees_and_approve_for_it() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.begin(&AgentSettings::draining().table("approval", "policy = \"never\""));
    let agent = world.agent("solo");
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_noted("ready");
    for words in [&["status"][..], &["events"]] {
        let said = agent.run(words);
        assert!(said.contains(&reboot[..8]) && said.contains("Reboot"), "{words:?}: {said}");
    }
    let events: serde_json::Value = serde_json::from_str(&agent.run(&["events", "--json"])).expect("JSON");
    assert!(events.to_string().contains(&reboot), "{events}");
    agent.run(&["approve", "--all"]);
    world.is(&reboot, "Started");
    assert_eq!(world.approvers(&reboot), ["machine solo/solo"]);
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn nothing_is_done_in_a_dry_run() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", AgentSettings::draining())]);
    let agent = world.agent("solo");
    agent.start_with(&["--dry-run"]);
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    wait_until("it is told what would be done", || agent.log().contains("drain").then_some(()));
    world.run(&["event", "start", &reboot]);
    world.advance("1m");
    world.is(&reboot, "gone");
    world.is_settled();
    assert!(agent.did().is_empty(), "{:?}", agent.did());
    assert_eq!(world.start_requests(), 0);
    agent.stop();
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_rehearsal_runs_all_hooks_and_undoes_them_without_an_event() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", AgentSettings::draining())]);
    let agent: &Agent<'_> = world.agent("solo");
    let report = agent.run(&["rehearse"]);
    assert!(report.contains("drain"), "{report}");
    let did = agent.did();
    assert_eq!(did.first().map(String::as_str), Some("scheduled drain Reboot"), "{did:?}");
    assert_eq!(did.last().map(String::as_str), Some("undo drain Reboot"), "{did:?}");
    assert_eq!(world.start_requests(), 0);
}
