//! The outcome of a test: its verdict, the programs that failed, and the reason why it ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use forewarn_lifecycle::Timestamp;
use forewarn_types::show_duration;
use forewarn_verdict::{EventVerdict, Finding, Verdict};
use serde_json::{Value, json};

use super::programs::ProgramExit;
use crate::exit_code::TIMEOUT;

/// The outcome of a test.
pub(super) struct TestOutcome {
    /// Name of the test: the story, or the requested events.
    pub(super) name: String,
    pub(super) ending: Ending,
    pub(super) verdict: Verdict,
    /// Failures that are not those of an event: a failed expectation of the story, for example.
    pub(super) failures: Vec<String>,
    /// The failure of a story with its line.
    pub(super) details: Option<String>,
    /// Machines that have polled.
    pub(super) polled: Vec<String>,
    /// The first program that failed.
    pub(super) failed_program: Option<ProgramExit>,
    /// Programs that ended by themselves, with success.
    pub(super) ended_programs: Vec<ProgramExit>,
    pub(super) hints: Vec<String>,
    pub(super) real_time: Duration,
    pub(super) virtual_time: Duration,
    /// The first moment of the test on its clock.
    pub(super) beginning: Timestamp,
    /// Real time of audit entries, by their numbers.
    pub(super) real_times: BTreeMap<u64, Duration>,
    /// The printed output of a story.
    pub(super) transcript: Option<String>,
}

/// The reason why a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everything has happened.
    Complete,
    /// A program failed before that.
    ProgramFailed,
    /// It took too long.
    TimedOut(Duration),
    /// A signal ended it.
    Interrupted { signal: u8 },
}

/// The exit code of a test that failed.
const FAILED: u8 = 1;

impl TestOutcome {
    /// The exit code of the command.
    pub(super) fn exit_code(&self) -> u8 {
        match (self.ending, &self.failed_program) {
            (Ending::Interrupted { signal }, _) => signal.saturating_add(128),
            (_, Some(failed)) => failed.code(),
            (Ending::TimedOut(_), None) => TIMEOUT,
            (Ending::Complete | Ending::ProgramFailed, None) if self.failures().is_empty() => 0,
            (Ending::Complete | Ending::ProgramFailed, None) => FAILED,
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.exit_code() == 0
    }

    /// Everything that makes the test fail, the most important first.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut all = Vec::new();
        match self.ending {
            Ending::TimedOut(limit) => {
                all.push(format!("the test was not over after {} (--timeout)", show_duration(limit)));
            }
            Ending::Interrupted { signal } => {
                all.push(format!("the test was interrupted by signal {signal}"));
            }
            Ending::Complete | Ending::ProgramFailed => {}
        }
        let failed = self.failed_program.as_ref();
        all.extend(failed.map(|exit| format!("the command failed with {}: {}", exit.words(), exit.program)));
        all.extend(self.failures.iter().cloned());
        all.extend(self.verdict.failures.iter().cloned());
        all
    }

    /// The last line.
    pub(super) fn conclusion(&self) -> String {
        let failures = self.failures();
        let others = failures.len().saturating_sub(1);
        match failures.first() {
            None => self.verdict.conclusion(),
            Some(first) if others == 0 => format!("FAILED: {first}"),
            Some(first) => {
                format!("FAILED: {first} (and {})", forewarn_verdict::count_words(others, "other failure"))
            }
        }
    }

    /// The verdict in sentences, without the conclusion.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut all = self.verdict.sentences();
        let ended = self.ended_programs.iter();
        all.extend(
            ended.map(|exit| format!("the command ended by itself, with exit code 0: {}", exit.program)),
        );
        // The conclusion has the first failure; hints follow the failure that they are about.
        let is_first_shown = self.hints.is_empty() || self.details.is_some();
        let shown: Vec<_> = self.verdict.events.iter().map(|event| &event.sentence).collect();
        let failures = self.failures().into_iter().skip(usize::from(is_first_shown));
        all.extend(failures.filter(|failure| !shown.contains(&failure)));
        all
    }

    /// The verdict for a person.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        for sentence in self.sentences() {
            writeln!(text, "{sentence}").ok();
        }
        if let Some(details) = &self.details {
            writeln!(text, "{details}").ok();
        }
        if !self.passed() {
            for hint in &self.hints {
                writeln!(text, "  hint: {hint}").ok();
            }
        }
        let (virtual_time, real_time) = (show_duration(self.virtual_time), self.real_time.as_secs_f64());
        writeln!(text, "{virtual_time} on the clock of the test took {real_time:.1} s").ok();
        writeln!(text, "{}", self.conclusion()).ok();
        text
    }

    /// The verdict as a JSON object.
    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "passed": self.passed(),
            "exit_code": self.exit_code(),
            "conclusion": self.conclusion(),
            "failures": self.failures(),
            "sentences": self.sentences(),
            "details": self.details,
            "hints": self.hints,
            "polled": self.polled,
            "events": self.verdict.events,
            "command": self.failed_program.as_ref().map(|exit| json!({
                "program": exit.program, "machine": exit.machine, "exit_code": exit.code(),
            })),
            "real_seconds": self.real_time.as_secs_f64(),
            "virtual_seconds": self.virtual_time.as_secs(),
            "transcript": self.transcript,
        })
    }

    /// Events that programs should have approved, and did not.
    pub(super) fn unapproved(&self) -> impl Iterator<Item = &EventVerdict> {
        let is_meant =
            |event: &&EventVerdict| matches!(event.finding, Finding::Unapproved | Finding::Pending);
        self.verdict.events.iter().filter(is_meant)
    }
}
