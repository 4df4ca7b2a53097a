//! Every story of the library runs against the pure rules, and its page says what happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use forewarn_story::library::{Scenario, index, library};
use forewarn_story::{parse, run};

/// The sections of a page, in order.
const SECTIONS: [&str; 3] =
    ["## How a good program reacts", "## What to look at in the verdict", "## The story"];

/// Words that the advice of a page has.
const ADVICE: [&str; 2] = ["Started", "- Do not rely on"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stories/library")
}

fn transcript(scenario: &Scenario) -> String {
    let ran = parse(&scenario.story_in_place()).and_then(|story| run(&story));
    ran.map_or_else(|error| format!("{}.md: {error}", scenario.name), |transcript| transcript.to_string())
}

/// The types of the events of a transcript.
fn events(transcript: &str) -> BTreeSet<&str> {
    let lines = transcript.lines().map(str::trim_start).filter(|line| line.starts_with('E'));
    lines.filter_map(|line| line.split(' ').nth(1)).collect()
}

#[test]
fn the_directory_and_the_table_agree() {
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let names = pages.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name != "README").collect();
    names.sort_unstable();
    let listed: Vec<_> = library().iter().map(|scenario| scenario.name).collect();
    assert_eq!(listed, names, "crates/story/src/library.rs and stories/library");
    assert!(listed.len() >= 25);
}

#[test]
fn the_index_lists_every_page() {
    let readme = fs::read_to_string(directory().join("README.md")).unwrap();
    let table = index();
    assert!(readme.contains(&table), "stories/library/README.md needs this table:\n{table}");
}

#[test]
fn every_page_has_its_parts() {
    for scenario in library() {
        let (name, page) = (scenario.name, scenario.page);
        assert!(!scenario.title().is_empty() && !scenario.events().is_empty(), "{name}");
        let found: Vec<_> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(found, SECTIONS, "{name}");
        assert_eq!(page.matches("```story").count(), 1, "{name}");
        for words in ADVICE {
            assert!(page.contains(words), "{name}: {words}");
        }
        let story = scenario.story();
        assert!(story.contains("run command as svc"), "{name}");
        assert!(story.contains("expect") && story.contains("await"), "{name}");
    }
}

#[test]
fn every_story_of_the_library_passes_and_has_the_events_of_its_page() {
    let mut differing = BTreeMap::new();
    for scenario in library() {
        let transcript = transcript(scenario);
        if !transcript.contains("in the end") {
            differing.insert(scenario.name, transcript);
            continue;
        }
        let (found, listed) = (events(&transcript), scenario.events().into_iter().collect::<BTreeSet<_>>());
        if found != listed {
            differing.insert(scenario.name, format!("{found:?}"));
        }
    }
    let problems: Vec<_> = differing.values().map(String::as_str).collect();
    assert!(differing.is_empty(), "{:?}\n{}", differing.keys(), problems.join("\n"));
}

#[test]
fn every_story_of_the_library_can_run_on_a_server() {
    for scenario in library() {
        let story = parse(&scenario.story()).unwrap();
        assert!(story.check_live().is_ok(), "{}", scenario.name);
    }
}
