//! The outcome of every check, and the score.

use crate::Assignment;
use crate::catalogue::CHECKS;
use crate::check::{Check, Outcome, Severity};

/// Characters of a detail.
const DETAIL_CHARS_MAX: usize = 300;

/// The outcomes of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The endpoint, without secrets.
    pub url: String,
    /// Each check with its outcome, in the order of the catalogue.
    pub outcomes: Vec<(Check, Outcome)>,
}

/// Points of the checks that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Checks that passed.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
    /// Failed checks that have no points.
    pub advice: usize,
    /// Checks that could not run.
    pub not_run: usize,
    /// Points of the checks that passed.
    pub points: u32,
    /// Points of the checks that passed or failed.
    pub possible: u32,
}

/// The outcomes so far.
pub(crate) struct Results(Vec<(Check, Option<Outcome>)>);

impl Results {
    pub(crate) fn new() -> Self {
        Self(CHECKS.iter().map(|check| (*check, None)).collect())
    }

    /// Records the outcome of one try of a check. A check may be tried several times: its first failure counts.
    pub(crate) fn judge(&mut self, check: &Check, outcome: Result<(), String>) {
        let Some((_, known)) = self.0.iter_mut().find(|(known, _)| known.id == check.id) else { return };
        match (known.as_ref(), outcome) {
            (Some(Outcome::Failed(_)), _) => {}
            (Some(Outcome::Passed | Outcome::NotRun(_)) | None, Err(why)) => {
                *known = Some(Outcome::Failed(why.chars().take(DETAIL_CHARS_MAX).collect()));
            }
            (Some(Outcome::Passed | Outcome::NotRun(_)) | None, Ok(())) => *known = Some(Outcome::Passed),
        }
    }

    /// Records why a check cannot run, unless it has an outcome.
    pub(crate) fn cannot_run(&mut self, check: &Check, why: &str) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| known.id == check.id) {
            known.get_or_insert_with(|| Outcome::NotRun(why.chars().take(DETAIL_CHARS_MAX).collect()));
        }
    }

    pub(crate) fn into_report(self, assignment: &Assignment) -> Report {
        let missing = |check: &Check| Outcome::NotRun(check.need.missing().to_owned());
        let outcome =
            |(check, known): (Check, Option<Outcome>)| (check, known.unwrap_or_else(|| missing(&check)));
        Report { url: assignment.url.redacted(), outcomes: self.0.into_iter().map(outcome).collect() }
    }
}

impl Report {
    /// Counts and points.
    #[must_use]
    pub fn score(&self) -> Score {
        let mut score = Score::default();
        for (check, outcome) in &self.outcomes {
            let points = check.severity.points();
            match outcome {
                Outcome::Passed => {
                    score.passed += 1;
                    score.points += points;
                    score.possible += points;
                }
                Outcome::Failed(_) if check.severity == Severity::Advice => score.advice += 1,
                Outcome::Failed(_) => {
                    score.failed += 1;
                    score.possible += points;
                }
                Outcome::NotRun(_) => score.not_run += 1,
            }
        }
        score
    }
}

impl Score {
    /// The share of the possible points, rounded down: 100 only if no check with points has failed.
    #[must_use]
    pub fn percent(self) -> u32 {
        (self.points * 100).checked_div(self.possible).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{DURATION, EVENT_ID, HEAD_REFUSED, PATH_CASE};

    fn report(of: impl FnOnce(&mut Results)) -> Report {
        let mut results = Results::new();
        of(&mut results);
        let missing = |(check, known): (Check, Option<Outcome>)| {
            (check, known.unwrap_or(Outcome::NotRun(String::new())))
        };
        Report { url: String::new(), outcomes: results.0.into_iter().map(missing).collect() }
    }

    #[test]
    fn checks_have_different_names_and_a_reason() {
        let mut ids: Vec<_> = CHECKS.iter().map(|check| check.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CHECKS.len());
        assert!(CHECKS.iter().all(|check| check.reason.ends_with('.') && !check.title.ends_with('.')));
    }

    #[test]
    fn the_first_failure_counts_and_stays() {
        let report = report(|results| {
            results.judge(&EVENT_ID, Ok(()));
            results.judge(&EVENT_ID, Err("first".to_owned()));
            results.judge(&EVENT_ID, Err("second".to_owned()));
            results.judge(&EVENT_ID, Ok(()));
            results.cannot_run(&EVENT_ID, "never");
        });
        let outcome = report.outcomes.iter().find(|(check, _)| check.id == EVENT_ID.id).unwrap();
        assert_eq!(outcome.1, Outcome::Failed("first".to_owned()));
    }

    #[test]
    fn checks_that_did_not_run_have_no_points_and_advice_costs_none() {
        let report = report(|results| {
            results.judge(&EVENT_ID, Ok(()));
            results.judge(&PATH_CASE, Err("404".to_owned()));
            results.judge(&HEAD_REFUSED, Err("200".to_owned()));
            results.cannot_run(&DURATION, "no event");
        });
        let score = report.score();
        assert_eq!((score.passed, score.failed, score.advice), (1, 1, 1));
        assert_eq!((score.points, score.possible, score.percent()), (3, 4, 75));
        assert_eq!(score.not_run, CHECKS.len() - 3);
    }
}
