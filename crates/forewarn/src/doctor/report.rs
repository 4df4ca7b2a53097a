//! What was looked at, and what came of it.

use std::fmt;

use serde_json::{Value, json};

/// Columns before what is said.
const CHECK_WIDTH: usize = 16;
const RESULT_WIDTH: usize = 9;

/// Everything that was looked at.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<(&'static str, Verdict)>);

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is as it should be.
    Well(String),
    /// It is not.
    Finding(Finding),
    /// That cannot be known here, and this is why.
    Unknown(String),
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What.
    pub(super) what: String,
    /// Why it matters.
    pub(super) why: &'static str,
    /// What to type about it.
    pub(super) remedy: String,
}

impl Report {
    pub(super) fn well(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push((check, Verdict::Well(what.into())));
    }

    pub(super) fn unknown(&mut self, check: &'static str, why: impl Into<String>) {
        self.0.push((check, Verdict::Unknown(why.into())));
    }

    pub(super) fn finding(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) {
        let finding = Finding { what: what.into(), why, remedy: remedy.into() };
        self.0.push((check, Verdict::Finding(finding)));
    }

    /// A problem that brings its own hint along; `remedy` is for one that does not.
    pub(super) fn problem(
        &mut self,
        check: &'static str,
        problem: &anyhow::Error,
        why: &'static str,
        remedy: &str,
    ) {
        let text = format!("{problem:#}");
        let (what, hint) = text.split_once("\n  hint: ").unwrap_or((&text, remedy));
        self.finding(check, what.trim(), why, hint.trim());
    }

    /// What came of something that may be wrong.
    pub(super) fn outcome(&mut self, check: &'static str, outcome: Result<String, Finding>) {
        match outcome {
            Ok(what) => self.well(check, what),
            Err(finding) => self.0.push((check, Verdict::Finding(finding))),
        }
    }

    pub(super) fn findings(&self) -> usize {
        self.0.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Finding(_))).count()
    }

    pub(super) fn json(&self) -> Value {
        let checks = self.0.iter().map(|(check, verdict)| match verdict {
            Verdict::Well(what) => json!({ "check": check, "result": "well", "what": what }),
            Verdict::Unknown(what) => json!({ "check": check, "result": "unknown", "what": what }),
            Verdict::Finding(Finding { what, why, remedy }) => {
                json!({ "check": check, "result": "finding", "what": what, "why": why, "remedy": remedy })
            }
        });
        json!({ "findings": self.findings(), "checks": checks.collect::<Vec<_>>() })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |check: &str, result: &str, what: &str| {
            writeln!(out, "{check:<CHECK_WIDTH$}{result:<RESULT_WIDTH$}{}", what.replace('\n', " "))
        };
        line("CHECK", "RESULT", "WHAT")?;
        for (check, verdict) in &self.0 {
            match verdict {
                Verdict::Well(what) => line(check, "well", what)?,
                Verdict::Unknown(what) => line(check, "unknown", what)?,
                Verdict::Finding(Finding { what, why, remedy }) => {
                    line(check, "FINDING", &format!("{what}: {why}"))?;
                    line("", "remedy", remedy)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_why_and_what_to_type() {
        let mut report = Report::default();
        report.well("clock", "it is right");
        report.unknown("journal", "it is locked");
        report.problem(
            "hands",
            &anyhow::anyhow!("not executable: /h\n  hint: chmod +x /h"),
            "nothing is done",
            "-",
        );
        assert_eq!(
            report.to_string(),
            "CHECK           RESULT   WHAT\n\
             clock           well     it is right\n\
             journal         unknown  it is locked\n\
             hands           FINDING  not executable: /h: nothing is done\n\
             \u{20}               remedy   chmod +x /h\n"
        );
        assert_eq!(report.findings(), 1);
        assert_eq!(report.json()["checks"][2]["remedy"], "chmod +x /h");
    }
}
