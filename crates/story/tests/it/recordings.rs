//! Every story is run, recorded from its audit log, and the recording is run: machines see the same documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use forewarn_story::record::{Recording, ServerHistory, record};
use forewarn_story::{Backend as _, RulesBackend, Story, parse, run, run_on};
use forewarn_testkit::documents_of_transcript;

/// Stories whose recording shows other documents, and the reason.
const NOT_RECORDED: [(&str, &str); 2] = [
    ("clock-steps", "a step of the wall clock is not in the log"),
    ("fencing", "a setting of the server is not in the log"),
];

/// Every story, by name.
fn stories() -> BTreeMap<String, Story> {
    let directory: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stories");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let stories = files.filter(|path| path.extension().is_some_and(|ending| ending == "story"));
    let named = stories.map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, parse(&fs::read_to_string(path).unwrap()).unwrap())
    });
    named.collect()
}

/// Runs a story, and records it since an entry.
fn recording_of(story: &Story, since: u64) -> (String, Recording) {
    let mut backend = RulesBackend::default();
    let transcript = run_on(story, &mut backend).unwrap();
    let tenants = backend.tenants().unwrap();
    let documents =
        tenants.iter().map(|tenant| (tenant.name.clone(), backend.document(&tenant.name).unwrap()));
    let history = ServerHistory {
        entries: backend.audit(0).unwrap(),
        since,
        fleet: Vec::new(),
        now: backend.beginning().plus(backend.elapsed()),
        documents: documents.collect(),
        machines: backend.machines().unwrap(),
    };
    (transcript.to_string(), record(&history))
}

#[test]
fn a_recording_shows_what_the_story_showed() {
    let mut other = Vec::new();
    for (name, story) in stories() {
        let (transcript, recording) = recording_of(&story, 1);
        let replayed = parse(&recording.story).and_then(|story| run(&story));
        let replayed = replayed.map_or_else(|error| error.to_string(), |transcript| transcript.to_string());
        if documents_of_transcript(&replayed) != documents_of_transcript(&transcript)
            || !recording.warnings.is_empty()
        {
            other.push(name.clone());
            eprintln!("== {name}\n{:#?}\n{}\n", recording.warnings, recording.story);
        }
    }
    let expected: Vec<_> = NOT_RECORDED.iter().map(|(name, _)| *name).collect();
    assert_eq!(other, expected);
}

#[test]
fn a_recording_since_an_entry_begins_with_the_fleet() {
    let text = "host h1 h2\nvm solo on h1\nvm other on h2\npoll all\nrestart other\nat 20m restart solo\n\
                at 21m approve solo by solo\nat 30m expect solo nothing\n";
    let mut backend = RulesBackend::default();
    run_on(&parse(text).unwrap(), &mut backend).unwrap();
    let entries = backend.audit(0).unwrap();
    let entry = entries.iter().find(|entry| entry.text == "requested: restart, machine solo").unwrap().number;
    let (_, part) = recording_of(&parse(text).unwrap(), entry);
    let expected = "host h1 h2\nvm solo on h1\nvm other on h2\npoll solo\npoll other\n";
    assert!(part.story.contains(expected), "{}", part.story);
    assert!(part.story.contains("\nrestart solo\nat 1m approve E1 by solo\n"), "{}", part.story);
    assert!(part.warnings[0].starts_with("1 operations before entry"), "{:?}", part.warnings);
    assert!(run(&parse(&part.story).unwrap()).is_ok());
}

#[test]
fn a_command_without_words_becomes_a_comment_and_a_warning() {
    use forewarn_control::{HostWorkEntry, NamedCommand};
    use forewarn_types::Span;
    let mut backend = RulesBackend::default();
    run_on(&parse("host h1\nvm solo on h1\npoll solo\n").unwrap(), &mut backend).unwrap();
    let duration = Some(Span(std::time::Duration::from_secs(45)));
    let work = HostWorkEntry { duration, ..HostWorkEntry::on(vec!["h1".to_owned()]) };
    backend.perform(&NamedCommand::UpdateHosts(work)).unwrap();
    let comma = HostWorkEntry { work: Some("a, b".to_owned()), ..HostWorkEntry::on(vec!["h1".to_owned()]) };
    assert!(backend.perform(&NamedCommand::RebootHosts(comma)).is_err());
    let (entries, now) = (backend.audit(0).unwrap(), backend.beginning());
    let history = ServerHistory {
        entries,
        since: 1,
        fleet: Vec::new(),
        now,
        documents: Vec::new(),
        machines: Vec::new(),
    };
    let Recording { story, warnings } = record(&history);
    assert!(story.contains("# Not recorded: {\"command\":\"update_hosts\""), "{story}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].ends_with("the language has no words for it"), "{warnings:?}");
}
