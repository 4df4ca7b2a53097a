//! `forewarn story run`: transcripts, or a report on all stories.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use forewarn_reports::{Case, CaseOutcome, Suite, junit};
use forewarn_story::StoryError;
use serde::Serialize;
use serde_json::json;

use super::live::LiveStage;
use super::{StoryFiles, read};
use crate::operator::{GlobalOptions, TestReportFormat, names, print, print_data, visible};

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    files: StoryFiles,
    /// Print only failures
    #[arg(long, short)]
    quiet: bool,
    /// Run on the server at --api, which needs a frozen virtual clock and an empty fleet
    #[arg(long)]
    live: bool,
}

/// The target of stories.
enum StoryTarget<'a> {
    /// The rule engine, without a server.
    Rules,
    /// The server of the options.
    Server(&'a GlobalOptions),
}

/// The result of one story.
#[derive(Serialize)]
struct StoryResult {
    /// The file.
    name: String,
    passed: bool,
    /// The line of the failure, from 1.
    line: Option<usize>,
    /// The failure in a sentence.
    message: Option<String>,
    /// The expected condition, if an expectation failed.
    expected: Option<String>,
    /// The condition that was found instead.
    actual: Option<String>,
    /// Everything that machines could have read, up to the failure.
    transcript: String,
    /// The failure with its line, for people.
    #[serde(skip)]
    failure: Option<String>,
}

pub(super) fn command(arguments: &RunArgs, options: &GlobalOptions) -> Result<()> {
    let RunArgs { files: StoryFiles { files }, quiet, live } = arguments;
    let target = if *live { StoryTarget::Server(options) } else { StoryTarget::Rules };
    let mut results = Vec::new();
    for file in files {
        let result = run_file(file, &target);
        if options.report() == TestReportFormat::Text {
            if !quiet {
                show_transcript(&result, files.len())?;
            }
            if let Some(failure) = &result.failure {
                eprintln!("forewarn: {}", visible(failure));
            }
        }
        results.push(result);
    }
    match options.report() {
        TestReportFormat::Text => {}
        TestReportFormat::Data(format) => print_data(format, &json!({ "stories": results }), names)?,
        TestReportFormat::Junit => print(&junit(&suite(&results)))?,
    }
    match results.iter().filter(|result| !result.passed).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} stories failed", files.len()),
    }
}

fn run_file(file: &Path, target: &StoryTarget<'_>) -> StoryResult {
    let name = file.display().to_string();
    let text = match read(file) {
        Ok(text) => text,
        Err(error) => return StoryResult::unplayed(name, format!("{error:#}")),
    };
    match run_text(&text, target) {
        Ok(transcript) => StoryResult { transcript, ..StoryResult::new(name) },
        Err(error) => match error.downcast::<StoryError>() {
            Ok(error) => StoryResult::failed(name, &error),
            Err(error) => {
                let message = format!("{name}: {error:#}");
                StoryResult::unplayed(name, message)
            }
        },
    }
}

fn run_text(text: &str, target: &StoryTarget<'_>) -> Result<String> {
    let story = forewarn_story::parse(text)?;
    let transcript = match target {
        StoryTarget::Rules => forewarn_story::run(&story)?,
        StoryTarget::Server(options) => {
            story.check_live()?;
            forewarn_story::run_on(&story, &mut LiveStage::new(options.client()?)?)?
        }
    };
    Ok(transcript.to_string())
}

impl StoryResult {
    fn new(name: String) -> Self {
        let transcript = String::new();
        Self {
            name,
            passed: true,
            line: None,
            message: None,
            expected: None,
            actual: None,
            transcript,
            failure: None,
        }
    }

    fn failed(name: String, error: &StoryError) -> Self {
        let circumstances = error.failure.clone().unwrap_or_default();
        let failure = Some(format!("{name}: {error}"));
        Self {
            passed: false,
            line: Some(error.line),
            message: error.message.lines().next().map(str::to_owned),
            expected: circumstances.expected,
            actual: circumstances.actual,
            transcript: circumstances.transcript,
            failure,
            ..Self::new(name)
        }
    }

    /// A story that did not begin.
    fn unplayed(name: String, message: String) -> Self {
        let failure = Some(message.clone());
        Self { passed: false, message: Some(message), failure, ..Self::new(name) }
    }
}

/// The results as a test suite.
fn suite(results: &[StoryResult]) -> Suite {
    let case = |result: &StoryResult| {
        let outcome = match (&result.message, &result.failure) {
            (Some(message), failure) => {
                let failure = failure.as_deref().unwrap_or(message);
                let details = format!("{}\n{failure}", result.transcript);
                CaseOutcome::Failed { message: message.clone(), details }
            }
            (None, _) => CaseOutcome::Passed,
        };
        Case::new("stories", result.name.clone(), outcome)
    };
    Suite { name: "forewarn story".to_owned(), cases: results.iter().map(case).collect() }
}

/// Prints the transcript of a story that has begun. A reader that closes the pipe early is not an error.
fn show_transcript(result: &StoryResult, files: usize) -> Result<()> {
    if result.transcript.is_empty() && result.failure.is_some() {
        return Ok(());
    }
    let heading = if files > 1 { format!("== {}\n", result.name) } else { String::new() };
    let mut out = io::stdout().lock();
    let shown = visible(&format!("{heading}{}", result.transcript));
    match write!(out, "{shown}").and_then(|()| out.flush()) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
