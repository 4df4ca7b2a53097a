//! Which links of the document were followed, by all runs together.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::steps::Outcome;

/// Hundredths of the links that have to be followed, and of those that have to lead to something. Chance has a part in it:
/// runs differ by some links.
const FOLLOWED_PERCENT_MIN: usize = 65;
const ARRIVED_PERCENT_MIN: usize = 50;

/// Links, each with whether what it led to was there.
#[derive(Debug, Default)]
pub(super) struct Links {
    followed: BTreeMap<String, bool>,
    /// How many the document has.
    total: usize,
}

impl Links {
    /// Adds what a run has written: how many links there are, and the statuses that were answered, by link.
    pub(super) fn add(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).context("schemathesis has not told of links")?;
        let told: Value = serde_json::from_str(&text)?;
        self.total = told["total"].as_u64().and_then(|total| total.try_into().ok()).context("no total")?;
        for (link, answers) in told["followed"].as_object().into_iter().flatten() {
            let has_arrived = |status: &Value| matches!(status.as_u64(), Some(200 | 304));
            let arrived = answers.as_array().is_some_and(|answers| answers.iter().any(has_arrived));
            *self.followed.entry(link.clone()).or_default() |= arrived;
        }
        Ok(())
    }

    /// Whether that is enough of them.
    pub(super) fn judge(&self) -> Outcome {
        let all = self.total;
        let followed = self.followed.len();
        let arrived = self.followed.values().filter(|arrived| **arrived).count();
        eprintln!("{followed} of {all} links were followed, {arrived} of them to something that was there");
        let is_enough = |some: usize, percent: usize| some * 100 >= all * percent;
        if is_enough(followed, FOLLOWED_PERCENT_MIN) && is_enough(arrived, ARRIVED_PERCENT_MIN) {
            return Outcome::Passed;
        }
        Outcome::Failed(format!(
            "{followed} links followed and {arrived} arrived, of {all}; at least {FOLLOWED_PERCENT_MIN} % and \
             {ARRIVED_PERCENT_MIN} % should be"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_count_once_however_many_runs_follow_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("links");
        let mut links = Links::default();
        for run in [json!({ "a": [404] }), json!({ "a": [404, 304], "b": [409] })] {
            std::fs::write(&file, json!({ "total": 2, "followed": run }).to_string()).unwrap();
            links.add(&file).unwrap();
        }
        assert_eq!(links.followed, BTreeMap::from([("a".to_owned(), true), ("b".to_owned(), false)]));
        assert_eq!(links.judge(), Outcome::Passed);
        links.total = 3;
        assert!(matches!(links.judge(), Outcome::Failed(_)));
    }
}
