//! The library on a server, its commands, and recordings of what happened on a server.

use std::collections::BTreeMap;

use forewarn_story::library::library;
use forewarn_testkit::server::dev;
use forewarn_testkit::{TestDir, TestServer, clean_command, documents_of_transcript};
use serde_json::Value;

use crate::live::server::{STAGE, play};
use crate::live::stories::stories;

/// Stories that are recorded on a server: one for each kind of statement. All stories are recorded in the rules by the
/// tests of the crate.
const RECORDED: [&str; 14] = [
    "approval",
    "automatic-approval",
    "brake",
    "cancellation",
    "degraded-host",
    "enrolment",
    "failed-host",
    "host-step",
    "maintenance-mode-scale-set",
    "overlaps",
    "rollout-changed",
    "rollout-failures",
    "tenant-windows",
    "terminate-step-by-step",
];

fn stage() -> TestServer {
    let mut command = clean_command(crate::program());
    dev(&mut command, &STAGE);
    TestServer::spawn(crate::program(), command)
}

fn story(words: &[&str]) -> (bool, String, String) {
    let mut command = clean_command(crate::program());
    let output = command.arg("story").args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn every_story_of_the_library_shows_on_a_server_what_it_shows_without_one() {
    for scenario in library() {
        let server = stage();
        let live = play(&scenario.story(), &["--live", "--api", server.api_url()]);
        let problem = String::from_utf8(live.stderr).unwrap();
        assert!(live.status.success(), "{}: {problem}", scenario.name);
        let parsed = forewarn_story::parse(&scenario.story()).unwrap();
        let expected = forewarn_story::run(&parsed).unwrap().to_string();
        assert_eq!(String::from_utf8(live.stdout).unwrap(), expected, "{}", scenario.name);
    }
}

#[test]
fn the_library_is_listed_shown_and_run_by_name() {
    let (listed, table, _) = story(&["ls"]);
    assert!(listed && table.starts_with("NAME "), "{table}");
    assert_eq!(table.lines().count(), library().len() + 1);
    let (_, json, _) = story(&["ls", "--output", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let freeze = json["items"].as_array().unwrap().iter().find(|item| item["name"] == "freeze").unwrap();
    assert_eq!(freeze["events"], serde_json::json!(["Freeze"]));

    let (_, page, _) = story(&["show", "freeze"]);
    assert!(page.starts_with("# ") && page.contains("```story\nhost h1\n"), "{page}");
    let (_, only, _) = story(&["show", "freeze", "--story"]);
    assert!(only.starts_with("host h1\n") && !only.contains("```"), "{only}");
    let (_, all, _) = story(&["show", "freeze", "--output", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&all).unwrap()["story"], only.as_str());

    let (ran, transcript, _) = story(&["run", "freeze"]);
    assert!(ran && transcript.contains("E1 Freeze Scheduled"), "{transcript}");
    let (ran, _, problem) = story(&["run", "freze"]);
    assert!(!ran && problem.contains("hint: did you mean freeze?"), "{problem}");
    let (shown, _, problem) = story(&["show", "nothing-like-it"]);
    assert!(!shown && problem.contains("forewarn story ls"), "{problem}");
}

#[test]
fn a_story_that_ran_on_a_server_is_recorded_and_runs_again() {
    let all: BTreeMap<_, _> = stories();
    for name in RECORDED {
        let server = stage();
        let live = play(&all[name], &["--live", "--api", server.api_url()]);
        assert!(live.status.success(), "{name}");
        let (recorded, text, warnings) = story(&["record", "--api", server.api_url()]);
        assert!(recorded && warnings.is_empty(), "{name}: {warnings}\n{text}");
        let again = play(&text, &[]);
        let problem = String::from_utf8(again.stderr).unwrap();
        assert!(again.status.success(), "{name}: {problem}\n{text}");
        let (again, live) =
            (String::from_utf8(again.stdout).unwrap(), String::from_utf8(live.stdout).unwrap());
        assert_eq!(documents_of_transcript(&again), documents_of_transcript(&live), "{name}\n{text}");
        assert!(!documents_of_transcript(&live).is_empty(), "{name}");
    }
}

#[test]
fn a_recording_goes_to_a_new_file() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo"]);
    server.run(&["vm", "restart", "solo"]);
    let directory = TestDir::new();
    let name = directory.path("incident.story");
    let name = name.as_str();
    let (written, _, warnings) = story(&["record", name, "--api", server.api_url()]);
    assert!(
        written && warnings == "forewarn: warning: addresses and tags of machines are left out\n",
        "{warnings}"
    );
    let text = directory.read("incident.story");
    assert!(
        text.contains("\npoll solo\nrestart solo\n") && text.contains("\nexpect solo Scheduled\n"),
        "{text}"
    );
    let (again, _, problem) = story(&["record", name, "--api", server.api_url()]);
    assert!(!again && problem.contains("cannot write the story"), "{problem}");
    let (beyond, _, problem) = story(&["record", "--since", "100000", "--api", server.api_url()]);
    assert!(!beyond && problem.contains("no such entry in the audit log"), "{problem}");
}
