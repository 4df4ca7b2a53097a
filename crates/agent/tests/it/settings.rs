//! Settings that are wrong, and settings that are read again.

use rustix::process::Signal;

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, scheduled};
use forewarn_testkit::log_objects;

/// promise: A7
#[test]
fn wrong_settings_are_told_all_at_once() {
    let place =
        Place::new("http://127.0.0.1:1", "pol = \"1s\"\n[[hook]]\nname = \"x\"\n[peers]\nmembers = true\n");
    for command in ["check-config", "run", "events", "rehearse"] {
        let ran = place.run(&[command]);
        assert_eq!(ran.code, Some(1), "{command}");
        assert_eq!(ran.out, "");
        for what in [
            "agent.toml:4: unknown field `pol`",
            "agent.toml:5: x: a hook has no work",
            "peers need a shared key",
        ] {
            assert!(ran.err.contains(what), "{command}: {what}: {}", ran.err);
        }
    }
}

/// promise: S6
#[test]
fn an_agent_with_a_json_log_says_in_one_object_what_is_wrong_with_its_settings() {
    let place = Place::new("http://127.0.0.1:1", "pol = \"1s\"\n[log]\nformat = \"json\"\n");
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, Some(1));
    let log = log_objects(&(ran.out + &ran.err));
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!((&log[0]["level"], &log[0]["message"]), (&"ERROR".into(), &"program failed".into()));
    assert!(log[0]["error"].as_str().is_some_and(|text| text.contains("unknown field `pol`")), "{log:?}");
}

#[test]
fn settings_that_are_well_are_shown() {
    let hook = tracing_hook("drain", "scheduled") + "order = 7\n";
    let place =
        Place::new("http://127.0.0.1:1", &(hook + "[[hook]]\nname = \"t\"\ntouch = { path = \"DIR/x\" }\n"));
    let ran = place.run(&["check-config"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(lines[1].starts_with("scheduled  7      drain  5m     0        -"), "{}", ran.out);
    assert!(lines[2].starts_with("scheduled  50     t      5m     0        yes"), "{}", ran.out);
    assert!(ran.err.ends_with("agent.toml is valid\n"), "{}", ran.err);
    let missing = "[[hook]]\nname = \"m\"\ncommand = [\"/no/such/program\"]\n";
    let ran = Place::new("http://127.0.0.1:1", missing).run(&["check-config"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("note: hook m: program not found: /no/such/program\n"), "{}", ran.err);
}

/// promise: A7
#[test]
fn settings_are_read_again_when_it_is_told() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), "");
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    place.write_config(&endpoint.url(), "nonsense = 1\n");
    agent.signal(Signal::HUP);
    agent.hear("invalid agent settings: nothing changed");
    place.write_config(
        &endpoint.url(),
        &(String::from("poll = \"2s\"\n") + &tracing_hook("new", "scheduled")),
    );
    agent.signal(Signal::HUP);
    let said = agent.hear("agent settings reloaded hooks=1");
    assert!(said.contains("changed setting needs a restart of the agent setting=\"poll\""), "{said}");
    endpoint.say(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    agent.hear("approval accepted");
    place.expect(&["scheduled new 1"]);
    assert!(agent.stop().success());
}

#[test]
fn what_the_command_line_says_is_no_change_of_settings() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new("http://127.0.0.1:1", "");
    let agent = place.start_with(&["run", "--endpoint", &endpoint.url()], &[]);
    let said = agent.hear("Scheduled Events enabled");
    assert!(said.contains("by=\"on the command line\""), "{said}");
    for times in 1..=2 {
        agent.signal(Signal::HUP);
        let said = agent.hear_times("agent settings reloaded", times);
        assert!(!said.contains("needs a restart"), "{said}");
    }
    endpoint.wait_for_polls(2);
    assert!(agent.stop().success());
}

/// promise: A7
#[test]
fn settings_wait_for_hooks_that_run() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let hook = "[[hook]]\nname = \"waits\"\n\
                command = [\"/bin/sh\", \"-c\", \"while [ -d DIR ] && [ ! -e DIR/go ]; do sleep 0.05; done\"]\n";
    let place = Place::new(&endpoint.url(), hook);
    let agent = place.start();
    agent.hear("hook=\"waits\"");
    place.write_config(&endpoint.url(), "");
    agent.signal(Signal::HUP);
    agent.hear("reload postponed until no hook runs");
    std::fs::write(place.path("go"), "").unwrap();
    agent.hear("approval accepted");
    agent.hear("agent settings reloaded hooks=0");
}

#[test]
fn an_address_that_is_taken_is_told_with_the_cause_before_the_hint() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let place = Place::new("http://127.0.0.1:1", &format!("listen = \"{address}\"\n"));
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = format!("cannot listen at {address}: Address already in use (os error 98)\n  hint: ");
    assert!(ran.err.contains(&expected), "{}", ran.err);
}
