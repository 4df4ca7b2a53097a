//! Every story of the repository, and what cannot be played.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::live::server::{STAGE, play, play_on};

/// What only the pure rules can play: it steps the wall clock, ends the process, or changes a setting of the server.
const NOT_LIVE: [&str; 3] = ["clock-steps", "crash", "fencing"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stories")
}

/// Every story, by name.
pub(crate) fn stories() -> BTreeMap<String, String> {
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let stories = files.filter(|path| path.extension().is_some_and(|ending| ending == "story"));
    stories
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// What the story showed when it was last looked at: all that follows the head of the snapshot.
fn seen(name: &str) -> String {
    let snapshot = fs::read_to_string(directory().join(format!("seen/seen@{name}.story.snap"))).unwrap();
    let (_, body) = snapshot.strip_prefix("---\n").unwrap().split_once("---\n").unwrap();
    body.to_owned()
}

/// promise: X1
#[test]
fn every_story_shows_on_a_server_what_it_shows_without_one() {
    let mut not_live = Vec::new();
    for (name, text) in stories() {
        if forewarn_story::parse(&text).unwrap().check_live().is_err() {
            not_live.push(name);
            continue;
        }
        let output = play_on(&STAGE, &text);
        let problem = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{name}: {problem}");
        // A snapshot ends with one line break, whatever the transcript ends with.
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(format!("{}\n", shown.trim_end()), seen(&name), "{name}");
    }
    assert_eq!(not_live, NOT_LIVE);
}

/// What goes wrong, without the name of the program and the file.
fn mistake(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// promise: X1
#[test]
fn a_mistake_is_told_on_a_server_as_it_is_without_one() {
    let fleet = "host h1\navailabilityset a\nmachine solo of a on h1\navailabilityset b\nmachine twin of b on h1\n\
                 availabilityset c\nmachine twin of c on h1\npoll all\n";
    for line in [
        "restart slo",
        "restart a/nobody",
        "restart twin",
        "vm h9 on h9",
        "poll nobody",
        "approve a by slo",
        "approve nothing by solo",
        "update host h1 h2",
        "cancel rollout",
        "restart solo\nadvance 1h\nforce E1",
        "approve a by owner of a",
        "host h1",
        "refused restart solo",
        "expect a Started",
        "expect solo gone",
    ] {
        let story = format!("{fleet}{line}\n");
        let live = mistake(&play_on(&STAGE, &story));
        assert_eq!(live, mistake(&play(&story, &[])), "{line}");
    }
}

/// promise: X1
#[test]
fn a_server_that_is_no_stage_is_not_touched() {
    let story = "host h1\n";
    for (arguments, words) in [
        (&["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"][..], "needs an empty fleet"),
        (&["--fleet", "none", "--clock", "60x"], "needs a frozen clock"),
        (
            &["--fleet", "none", "--clock", "frozen", "--clock-start", "2026-01-01T00:00:00.5Z"],
            "needs a clock at a whole second",
        ),
    ] {
        let problem = mistake(&play_on(arguments, story));
        assert!(problem.contains(words) && problem.contains("hint: forewarn dev --fleet none"), "{problem}");
    }
    let crash = mistake(&play_on(&STAGE, "host h1\ncrash\n"));
    assert!(crash.contains("line 2, column 1: this statement cannot run on a live server"), "{crash}");
    let nobody = mistake(&play(story, &["--live", "--api", "http://127.0.0.1:1"]));
    assert!(nobody.contains("cannot reach the server at http://127.0.0.1:1"), "{nobody}");
}
