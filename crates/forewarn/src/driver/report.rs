//! The checks of a driver program with their verdicts.

use std::fmt;

use forewarn_cli_support::table::{Table, Width};
use serde_json::{Value, json};

/// The verdict of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    /// The contract is not kept.
    Finding,
    /// The program answers that it cannot carry out the order, which it may.
    Refused,
    /// The check could not be made.
    Skipped,
}

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Finding => "FINDING",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
        }
    }
}

/// Checks with their verdicts and details.
#[derive(Debug, Default)]
pub(super) struct DriverReport(Vec<(String, Verdict, String)>);

impl DriverReport {
    pub(super) fn add(&mut self, check: &str, verdict: Verdict, details: impl Into<String>) {
        self.0.push((check.to_owned(), verdict, details.into()));
    }

    fn count(&self, wanted: Verdict) -> usize {
        self.0.iter().filter(|(_, verdict, _)| *verdict == wanted).count()
    }

    pub(super) fn findings(&self) -> usize {
        self.count(Verdict::Finding)
    }

    pub(super) fn json(&self) -> Value {
        let checks = self.0.iter().map(|(check, verdict, details)| {
            json!({ "check": check, "verdict": verdict.as_str().to_lowercase(), "details": details })
        });
        json!({ "findings": self.findings(), "checks": checks.collect::<Vec<_>>() })
    }
}

impl fmt::Display for DriverReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(Width::Wide, &["check", "verdict", "details"]);
        for (check, verdict, details) in &self.0 {
            table.row([check.clone(), verdict.as_str().to_owned(), details.clone()]);
        }
        let count = |verdict| self.count(verdict);
        writeln!(
            out,
            "{table}{} ok, {} findings, {} refused, {} skipped",
            count(Verdict::Ok),
            count(Verdict::Finding),
            count(Verdict::Refused),
            count(Verdict::Skipped)
        )
    }
}
