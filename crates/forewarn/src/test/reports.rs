//! Reports of a test: JUnit XML, TAP, JSON, and a page with a timeline.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use forewarn_reports::{Case, CaseOutcome, Suite, junit, tap};
use forewarn_verdict::{EventVerdict, Finding};

use super::html::page;
use super::outcome::TestOutcome;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictReportFormat {
    Junit,
    Tap,
    Json,
    Html,
}

pub(super) fn parse_report(text: &str) -> Result<(PathBuf, VerdictReportFormat), String> {
    let path = PathBuf::from(text);
    let format = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xml") => VerdictReportFormat::Junit,
        Some("tap") => VerdictReportFormat::Tap,
        Some("json") => VerdictReportFormat::Json,
        Some("html") => VerdictReportFormat::Html,
        Some(_) | None => return Err("the name must end with .xml, .tap, .json or .html".to_owned()),
    };
    Ok((path, format))
}

/// Checks that a report can be written there, before the test runs.
pub(super) fn check_report(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    ensure!(directory.is_none_or(Path::is_dir), "no such directory for the report: {}", path.display());
    ensure!(!path.is_dir(), "the report is a directory: {}", path.display());
    Ok(())
}

pub(super) fn write_report(outcome: &TestOutcome, path: &Path, format: VerdictReportFormat) -> Result<()> {
    let text = match format {
        VerdictReportFormat::Junit => junit(&suite(outcome)),
        VerdictReportFormat::Tap => tap(&suite(outcome)),
        VerdictReportFormat::Json => format!("{:#}\n", outcome.json()),
        VerdictReportFormat::Html => page(outcome),
    };
    std::fs::write(path, text).with_context(|| format!("cannot write the report: {}", path.display()))
}

/// Name of the group of tests.
const CLASS: &str = "forewarn test";

/// Name of the test of everything that concerns no single event. Names do not depend on the result, so that CI can follow
/// a test over time.
const WHOLE: &str = "the program, the story and the test as a whole";

/// The outcome as a test for each event, and one for the rest.
fn suite(outcome: &TestOutcome) -> Suite {
    let failures = outcome.failures();
    let hints = outcome.hints.join("\n");
    let mut cases: Vec<_> =
        outcome.verdict.events.iter().map(|event| case(event, &failures, &hints)).collect();
    let of_events: Vec<_> = outcome.verdict.events.iter().map(|event| &event.sentence).collect();
    let others: Vec<_> = failures.iter().filter(|failure| !of_events.contains(failure)).cloned().collect();
    let whole = match others.split_first() {
        None => CaseOutcome::Passed,
        Some((first, more)) => {
            let details = more.iter().chain(&outcome.details).chain([&hints]).map(String::as_str);
            let details: Vec<_> = details.filter(|text| !text.is_empty()).collect();
            CaseOutcome::Failed { message: first.clone(), details: details.join("\n") }
        }
    };
    let mut whole = Case::new(CLASS, WHOLE, whole);
    whole.duration = Some(outcome.real_time);
    cases.push(whole);
    Suite { name: format!("forewarn test: {}", outcome.name), cases }
}

fn case(event: &EventVerdict, failures: &[String], hints: &str) -> Case {
    let machines = event.history.machines.join(", ");
    let name = format!("{} ({} of {machines}) is approved before it starts", event.name, event.history.kind);
    let message = event.sentence.clone();
    let outcome = match &event.finding {
        _ if failures.contains(&event.sentence) => CaseOutcome::Failed { message, details: hints.to_owned() },
        Finding::Approved { .. } => CaseOutcome::Passed,
        Finding::ApprovedByOther { .. }
        | Finding::Unapproved
        | Finding::Unread
        | Finding::Pending
        | Finding::Withdrawn
        | Finding::WithoutNotice
        | Finding::Unconcerned => CaseOutcome::Skipped { message },
    };
    Case::new(CLASS, name, outcome)
}
