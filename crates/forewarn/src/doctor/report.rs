//! The checks of the doctor with their results.

use std::fmt;

use serde_json::{Value, json};

/// Columns of the table.
const CHECK_WIDTH: usize = 16;
const RESULT_WIDTH: usize = 9;

/// Checks with their results.
#[derive(Debug, Default)]
pub(super) struct DoctorReport(Vec<(&'static str, CheckResult)>);

#[derive(Debug, PartialEq, Eq)]
enum CheckResult {
    Ok(String),
    /// It works, and could be better.
    Warning(String),
    Finding(Finding),
    /// The check has no result, for this reason.
    Unknown(String),
}

/// A problem that the operator should fix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) what: String,
    /// The effect of the problem.
    pub(super) why: &'static str,
    /// A command or setting that fixes it.
    pub(super) remedy: String,
}

impl DoctorReport {
    pub(super) fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push((check, CheckResult::Ok(what.into())));
    }

    pub(super) fn unknown(&mut self, check: &'static str, why: impl Into<String>) {
        self.0.push((check, CheckResult::Unknown(why.into())));
    }

    pub(super) fn warning(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push((check, CheckResult::Warning(what.into())));
    }

    pub(super) fn finding(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) {
        let finding = Finding { what: what.into(), why, remedy: remedy.into() };
        self.0.push((check, CheckResult::Finding(finding)));
    }

    /// Adds a finding for an error. Its hint is the remedy; `remedy` is for an error without a hint.
    pub(super) fn error(
        &mut self,
        check: &'static str,
        error: &anyhow::Error,
        why: &'static str,
        remedy: &str,
    ) {
        let text = format!("{error:#}");
        let (what, hint) = text.split_once("\n  hint: ").unwrap_or((&text, remedy));
        self.finding(check, what.trim(), why, hint.trim());
    }

    pub(super) fn outcome(&mut self, check: &'static str, outcome: Result<String, Finding>) {
        match outcome {
            Ok(what) => self.ok(check, what),
            Err(finding) => self.0.push((check, CheckResult::Finding(finding))),
        }
    }

    pub(super) fn findings(&self) -> usize {
        self.0.iter().filter(|(_, verdict)| matches!(verdict, CheckResult::Finding(_))).count()
    }

    pub(super) fn json(&self) -> Value {
        let checks = self.0.iter().map(|(check, verdict)| match verdict {
            CheckResult::Ok(what) => json!({ "check": check, "result": "ok", "what": what }),
            CheckResult::Warning(what) => json!({ "check": check, "result": "warning", "what": what }),
            CheckResult::Unknown(what) => json!({ "check": check, "result": "unknown", "what": what }),
            CheckResult::Finding(Finding { what, why, remedy }) => {
                json!({ "check": check, "result": "finding", "what": what, "why": why, "remedy": remedy })
            }
        });
        json!({ "findings": self.findings(), "checks": checks.collect::<Vec<_>>() })
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |check: &str, result: &str, what: &str| {
            writeln!(out, "{check:<CHECK_WIDTH$}{result:<RESULT_WIDTH$}{}", what.replace('\n', " "))
        };
        line("CHECK", "RESULT", "DETAILS")?;
        for (check, verdict) in &self.0 {
            match verdict {
                CheckResult::Ok(what) => line(check, "ok", what)?,
                CheckResult::Warning(what) => line(check, "warning", what)?,
                CheckResult::Unknown(what) => line(check, "unknown", what)?,
                CheckResult::Finding(Finding { what, why, remedy }) => {
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
    fn a_finding_has_its_effect_and_a_remedy() {
        let mut report = DoctorReport::default();
        report.ok("clock", "system time is plausible");
        report.warning("etcd version", "outdated");
        report.unknown("journal", "locked");
        report.error(
            "driver",
            &anyhow::anyhow!("not executable: /h\n  hint: chmod +x /h"),
            "no operation runs",
            "-",
        );
        assert_eq!(
            report.to_string(),
            "CHECK           RESULT   DETAILS\n\
             clock           ok       system time is plausible\n\
             etcd version    warning  outdated\n\
             journal         unknown  locked\n\
             driver          FINDING  not executable: /h: no operation runs\n\
             \u{20}               remedy   chmod +x /h\n"
        );
        assert_eq!(report.findings(), 1);
        assert_eq!(report.json()["checks"][3]["remedy"], "chmod +x /h");
    }
}
