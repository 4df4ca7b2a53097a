//! One agent after the other: each event once, whatever ends the agent in between.

use std::fs;

use crate::place::{Place, is_alive, tracing_hook};
use forewarn_testkit::{TestServer, wait_until};

fn endpoint(server: &TestServer) -> String {
    format!("http://{}/vm/web_0", server.metadata())
}

/// A hook that hangs for as long as there is no file `go`, and says which process it is. It does not outlive the test.
const HANGS: &str = "[[hook]]\nname = \"hangs\"\norder = 60\ncommand = [\"/bin/sh\", \"-c\", \
    \"echo hangs $FOREWARN_ATTEMPT >> DIR/traces; echo $$ > DIR/pid; while [ -d DIR ] && [ ! -e DIR/go ]; do sleep 0.05; done\"]\n";

/// Which process the hook is, once it has said so.
fn pid_of_hook(place: &Place) -> String {
    let said = || fs::read_to_string(place.path("pid")).ok().filter(|said| said.ends_with('\n'));
    wait_until("the hook says who it is", said)
}

/// promise: A2
#[test]
fn an_agent_that_is_killed_in_the_middle_of_a_hook_goes_on_where_it_was() {
    let server = TestServer::start(crate::program());
    let settings = tracing_hook("first", "scheduled") + HANGS + &tracing_hook("undone", "undo");
    let place = Place::new(&endpoint(&server), &settings);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    place.expect(&["scheduled first 1", "hangs 1"]);
    let pid = pid_of_hook(&place);
    agent.kill();
    assert!(is_alive(&pid), "a hook does not end with its agent");
    let agent = place.start();
    agent.hear("killed hooks of a previous agent");
    wait_until("what was left is ended", || (!is_alive(&pid)).then_some(()));
    place.expect(&["scheduled first 1", "hangs 1", "hangs 2"]);
    assert_eq!(server.status("web_0"), "Scheduled", "nothing is approved before the work has ended");
    fs::write(place.path("go"), "").unwrap();
    wait_until("it is approved", || (server.status("web_0") == "Started").then_some(()));
    agent.hear("approval accepted");
    agent.kill();
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.advance("1m");
    agent.hear("undo completed");
    place.expect(&["scheduled first 1", "hangs 1", "hangs 2", "undo undone 1"]);
}

#[test]
fn what_was_done_is_undone_by_the_next_life() {
    let server = TestServer::start(crate::program());
    let hook = "[[hook]]\nname = \"mark\"\ntouch = { path = \"DIR/mark\" }\n";
    let settings = format!("{hook}{}", tracing_hook("done", "completed"));
    let place = Place::new(&endpoint(&server), &settings);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    wait_until("it starts", || (server.status("web_0") == "Started").then_some(()));
    agent.hear("event started");
    assert!(place.path("mark").exists());
    assert!(agent.stop().success());
    // The machine restarts; by the time it is back, the event is over.
    server.advance("1h");
    assert!(place.path("mark").exists());
    let agent = place.start();
    agent.hear("undo completed");
    assert!(!place.path("mark").exists());
    place.expect(&["completed done 1"]);
    drop(agent);
}

#[test]
fn told_to_stop_it_stops_its_hooks_and_the_next_life_runs_them_again() {
    let server = TestServer::start(crate::program());
    let place = Place::new(&endpoint(&server), HANGS);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    place.expect(&["hangs 1"]);
    let pid = pid_of_hook(&place);
    assert!(agent.stop().success());
    assert!(!is_alive(&pid));
    let run = &place.memory()["memory"]["cases"][0]["runs"]["scheduled"]["hangs"];
    assert_eq!(run["state"], "begun", "{run}");
    let agent = place.start();
    place.expect(&["hangs 1", "hangs 2"]);
    drop(agent);
}

/// promise: A2
#[test]
fn a_damaged_memory_is_put_aside_loudly() {
    let server = TestServer::start(crate::program());
    let place = Place::new(&endpoint(&server), &tracing_hook("first", "scheduled"));
    fs::write(place.path("state.json"), "{\"version\":1,\"memory\":{\"ca").unwrap();
    let agent = place.start();
    let said = agent.hear("Scheduled Events enabled");
    assert!(said.contains("ERROR state file damaged: moved aside"), "{said}");
    let names: Vec<_> =
        fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("state.json.damaged-")), "{names:?}");
    server.restart("web_0");
    place.expect(&["scheduled first 1"]);
    drop(agent);
}

/// promise: A2
#[test]
fn two_agents_do_not_share_a_memory() {
    let server = TestServer::start(crate::program());
    let place = Place::new(&endpoint(&server), "");
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let second = place.run(&["run"]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("another agent uses this state file"), "{second:?}");
    assert!(agent.stop().success());
}

/// promise: A2
#[test]
fn the_memory_is_kept_before_anything_is_done() {
    let server = TestServer::start(crate::program());
    let looks =
        "[[hook]]\nname = \"looks\"\ncommand = [\"/bin/cp\", \"DIR/state.json\", \"DIR/then.json\"]\n";
    let place = Place::new(&endpoint(&server), looks);
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    server.restart("web_0");
    wait_until("it is approved", || (server.status("web_0") == "Started").then_some(()));
    let then: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("then.json")).unwrap()).unwrap();
    assert_eq!(then["memory"]["cases"][0]["runs"]["scheduled"]["looks"]["state"], "begun", "{then}");
}
