//! Reports as text, JSON, Markdown and JUnit.

use std::fmt::Write as _;

use forewarn_reports::{Case, CaseOutcome, Suite, junit};
use serde_json::{Value, json};

use crate::check::{Check, Outcome};
use crate::report::{Report, Score};

/// The words of an outcome.
fn words(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::Failed(why) => ("failed", why),
        Outcome::NotRun(why) => ("not run", why),
    }
}

impl Report {
    /// One sentence: counts and points.
    #[must_use]
    pub fn summary(&self) -> String {
        let score = self.score();
        let Score { passed, failed, advice, not_run, points, possible } = score;
        format!(
            "{passed} checks passed, {failed} failed, {advice} failed without points, {not_run} could not run: \
             {points} of {possible} points, {} %",
            score.percent()
        )
    }

    /// One row for each check: name, severity, outcome, details.
    pub fn rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.outcomes.iter().map(|(check, outcome)| {
            let (word, why) = words(outcome);
            [check.id.to_owned(), check.severity.as_str().to_owned(), word.to_owned(), why.to_owned()]
        })
    }

    /// The report as a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let score = self.score();
        let checks = self.outcomes.iter().map(|(check, outcome)| {
            let Check { id, severity, title, reason, .. } = check;
            let (word, why) = words(outcome);
            json!({
                "check": id, "severity": severity.as_str(), "points": severity.points(), "title": title,
                "reason": reason, "outcome": word, "details": why,
            })
        });
        json!({
            "endpoint": self.url,
            "passed": score.passed, "failed": score.failed, "failedWithoutPoints": score.advice,
            "notRun": score.not_run, "points": score.points, "possiblePoints": score.possible,
            "percent": score.percent(), "checks": checks.collect::<Vec<_>>(),
        })
    }

    /// The report as a Markdown page.
    #[must_use]
    pub fn markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let mut page = format!("# Conformance of {}\n\n{}\n", self.url, self.summary());
        page.push_str("\n| check | severity | outcome | details |\n|---|---|---|---|\n");
        for (check, outcome) in &self.outcomes {
            let (word, why) = words(outcome);
            let details =
                if why.is_empty() { check.title.to_owned() } else { format!("{}: {why}", check.title) };
            // Writing to a text cannot fail.
            let severity = check.severity.as_str();
            writeln!(page, "| `{}` | {severity} | {word} | {} |", check.id, cell(&details)).ok();
        }
        page
    }

    /// The report as a JUnit test suite. A failed check without points is a skipped test.
    #[must_use]
    pub fn junit(&self) -> String {
        let cases = self.outcomes.iter().map(|(check, outcome)| {
            let (_, why) = words(outcome);
            let message = format!("{}: {why}", check.title);
            let outcome = match outcome {
                Outcome::Passed => CaseOutcome::Passed,
                Outcome::Failed(_) if check.severity.points() > 0 => {
                    CaseOutcome::Failed { message, details: check.reason.to_owned() }
                }
                Outcome::Failed(_) | Outcome::NotRun(_) => CaseOutcome::Skipped { message },
            };
            Case::new("conformance", check.id, outcome)
        });
        junit(&Suite { name: format!("conformance of {}", self.url), cases: cases.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{EVENT_ID, HEAD_REFUSED, PATH_CASE};

    fn report() -> Report {
        Report {
            url: "http://127.0.0.1".to_owned(),
            outcomes: vec![
                (EVENT_ID, Outcome::Passed),
                (PATH_CASE, Outcome::Failed("the status is 404, not <200> | \u{1}".to_owned())),
                (HEAD_REFUSED, Outcome::NotRun("no \"response\"".to_owned())),
            ],
        }
    }

    #[test]
    fn a_page_has_a_row_for_each_check() {
        let page = report().markdown();
        assert!(page.starts_with("# Conformance of http://127.0.0.1\n\n1 checks passed, 1 failed"), "{page}");
        assert!(page.contains("| `path-case` | relied on | failed | `/metadata/scheduledEvents` is accepted: the status is 404, not <200> \\| \u{1} |"), "{page}");
    }

    #[test]
    fn a_test_suite_is_well_formed() {
        let suite = report().junit();
        assert!(suite.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{suite}");
        assert!(suite.contains("not &lt;200&gt; | ?\">"), "{suite}");
        assert!(suite.contains("<testcase classname=\"conformance\" name=\"event-id\"/>"), "{suite}");
    }

    #[test]
    fn an_object_has_the_score_and_every_check() {
        let json = report().json();
        assert_eq!((json["points"].as_u64(), json["possiblePoints"].as_u64()), (Some(3), Some(4)));
        assert_eq!(json["checks"][1]["outcome"], "failed");
    }
}
