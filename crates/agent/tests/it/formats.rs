//! Every command of the agent in every output format.

use std::collections::BTreeSet;

use forewarn_testkit::{TestServer, clean_command, wait_until};
use serde_json::{Value, json};

use crate::place::{Place, tracing_hook};
use crate::played::{Played, Say, id, scheduled};

/// Commands without a result, with the reason.
const WITHOUT_FORMATS: [(&str, &str); 2] =
    [("run", "runs until it is stopped, and logs"), ("completions", "prints a script for a shell")];

/// Commands that are tried below.
const TRIED: [&str; 7] = ["status", "events", "approve", "retry", "check-config", "rehearse", "find"];

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn every_command_is_tried_in_every_format_or_is_listed() {
    let help = clean_command(env!("CARGO_BIN_EXE_forewarn-agent")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let section = help.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names =
        section.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: BTreeSet<_> =
        names.map(|line| line.split(' ').next().unwrap()).filter(|name| *name != "help").collect();
    let known: BTreeSet<_> = TRIED.into_iter().chain(WITHOUT_FORMATS.map(|(name, _)| name)).collect();
    assert_eq!(names, known);
}

#[test]
fn results_have_every_format() {
    let server = TestServer::start(crate::program());
    let settings = format!("[approval]\npolicy = \"never\"\n{}", tracing_hook("drain", "scheduled"));
    let place = Place::new(&format!("http://{}/vm/web_0", server.metadata()), &settings);
    let rehearsed: Value = serde_json::from_str(&place.run(&["rehearse", "-o", "json"]).out).unwrap();
    assert_eq!(rehearsed["hooks"][0]["hook"], "drain");
    assert_eq!(place.run(&["rehearse", "-o", "name"]).out, "drain\n");
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let at = agent.address();
    let event = server.restart("web_0");
    agent.hear("ready for event");
    wait_until("the event is in the status", || {
        (place.run(&["status", "--at", &at, "-o", "name"]).out == format!("{event}\n")).then_some(())
    });
    let endpoint = format!("http://{}/vm/web_0", server.metadata());
    let commands = [
        (&["status", "--at", &at][..], event.as_str()),
        (&["events"], &event),
        (&["check-config"], "drain"),
        (&["find"], &endpoint),
    ];
    for (words, name) in commands {
        let run = |format: &[&str]| {
            let ran = place.run(&[words, format].concat());
            assert_eq!(ran.code, Some(0), "{words:?} {format:?}: {ran:?}");
            ran.out
        };
        let json = run(&["-o", "json"]);
        serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{words:?}: {error}: {json}"));
        if words != ["status", "--at", &at] {
            assert_eq!(run(&["--json"]), json, "{words:?}");
        }
        let yaml = run(&["-o", "yaml"]);
        assert!(yaml.starts_with("---\n") && yaml.contains(name), "{words:?}: {yaml}");
        assert_eq!(run(&["-o", "name"]), format!("{name}\n"), "{words:?}");
        let table = run(&["-o", "table"]);
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{words:?}: {table}");
        assert!(run(&["-o", "wide"]).len() >= table.len(), "{words:?}");
    }
    assert!(agent.stop().success());
}

#[test]
fn approvals_are_reported_as_data() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900), scheduled(2, "Freeze", 900)]));
    let place = Place::new(&endpoint.url(), "");
    let ids = |out: &str| lines(out).iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let both = place.run(&["approve", &id(1), &id(2), "-o", "name"]);
    assert_eq!(ids(&both.out), [id(1), id(2)], "{both:?}");
    let asked = place.run_with(&["approve", "--interactive", "-o", "json"], "y\nn\n");
    let asked: Value = serde_json::from_str(&asked.out).unwrap();
    assert_eq!(asked, json!([{ "id": id(1), "approved": true }, { "id": id(2), "approved": false }]));
    let approved = place.run_with(&["approve", "--interactive", "-o", "name"], "n\ny\n");
    assert_eq!(ids(&approved.out), [id(2)]);
    let yaml = place.run_with(&["approve", "--interactive", "-o", "yaml"], "n\n");
    assert_eq!(yaml.out, format!("---\n- id: {:?}\n  approved: false\n", id(1)));
}

#[test]
fn retries_are_reported_as_data() {
    let endpoint = Played::start(Say::Events(vec![scheduled(1, "Reboot", 900)]));
    let place = Place::new(&endpoint.url(), "[[hook]]\nname = \"fails\"\ncommand = [\"/bin/false\"]\n");
    let agent = place.start();
    let at = agent.address();
    for (times, format) in (1..).zip(["json", "yaml", "name", "table", "wide"]) {
        agent.hear_times("hooks failed: this machine does not approve the event", times);
        let ran = place.run(&["retry", "--at", &at, "-o", format]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let expected = match format {
            "json" => {
                let retried: Value = serde_json::from_str(&ran.out).unwrap();
                assert_eq!(retried, json!([{ "event": id(1), "phase": "scheduled", "hook": "fails" }]));
                continue;
            }
            "yaml" => format!("---\n- event: {:?}\n  phase: scheduled\n  hook: fails\n", id(1)),
            "name" => "fails\n".to_owned(),
            _ => format!("fails runs again, in the phase scheduled of {}\n", id(1)),
        };
        assert_eq!(ran.out, expected, "{format}");
    }
}
