//! Steps of a run: the same as its transcript.

use std::time::Duration;

use forewarn_story::library::library;
use forewarn_story::{RunEnd, StepLimits, StoryStep, parse, run, run_in_steps};

const LIMITS: StepLimits =
    StepLimits { steps_max: 100_000, bytes_max: usize::MAX, time_max: Duration::from_secs(600) };

#[test]
fn the_steps_of_a_story_have_the_lines_of_its_transcript() {
    for scenario in library() {
        let story = parse(&scenario.story()).unwrap();
        let transcript = run(&story).unwrap().to_string();
        let recorded = run_in_steps(&story, LIMITS);
        assert_eq!(recorded.end, RunEnd::Passed, "{}", scenario.name);
        // Statements are indented by two spaces, what happens by six or more.
        let (happened, end) = transcript.split_once("\nin the end\n").unwrap();
        let happened: Vec<_> = happened
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| line.starts_with("    "))
            .collect();
        let texts: Vec<_> = recorded.steps.iter().flat_map(|step| &step.text).collect();
        assert_eq!(texts, happened, "{}", scenario.name);
        let machines: Vec<_> = end.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert_eq!(recorded.machines, machines, "{}", scenario.name);
    }
}

#[test]
fn a_statement_has_a_step_for_each_instant_at_which_it_does_something() {
    let text =
        "host h1\nvm solo on h1\npoll solo\nupdate host h1\nadvance 1h\nrepeat 2 times\n  poll solo\nend\n";
    let run = run_in_steps(&parse(text).unwrap(), LIMITS);
    let seen =
        |step: &StoryStep| (step.line, step.statement.clone(), step.at.as_secs(), step.documents.len());
    let steps: Vec<_> = run.steps.iter().map(seen).collect();
    let step = |line, statement: &str, at, documents| (line, statement.to_owned(), at, documents);
    let expected = [
        step(1, "host h1", 0, 0),
        step(2, "vm solo on h1", 0, 0),
        step(3, "poll solo", 0, 0),
        step(4, "update host h1", 0, 1),
        step(5, "advance 1h", 0, 0),
        step(5, "advance 1h", 900, 1),
        step(5, "advance 1h", 909, 1),
        step(7, "poll solo", 3600, 0),
        step(7, "poll solo", 3600, 0),
    ];
    assert_eq!(steps, expected);
    assert_eq!(run.events.len(), 1);
}

#[test]
fn a_tenant_that_is_gone_has_no_document_any_more() {
    let text = "host h1\nvm solo on h1\npoll solo\nrestart solo\nadvance 1h\nforget solo\n";
    let run = run_in_steps(&parse(text).unwrap(), LIMITS);
    let documents: Vec<_> = run.steps.iter().flat_map(|step| &step.documents).collect();
    assert!(documents[0].document.as_ref().unwrap().contains("Reboot"), "{run:?}");
    assert_eq!(
        (documents.last().unwrap().tenant.as_str(), &documents.last().unwrap().document),
        ("solo", &None)
    );
}
