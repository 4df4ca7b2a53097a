//! The links of the OpenAPI document that all runs together followed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::steps::Outcome;

/// The share of links that must be followed, and of links that must lead to an existing object. Runs differ by some
/// links.
const FOLLOWED_PERCENT_MIN: usize = 65;
const ARRIVED_PERCENT_MIN: usize = 50;

/// The followed links; true if the target of a link existed.
#[derive(Debug, Default)]
pub(super) struct Links {
    followed: BTreeMap<String, bool>,
    /// The number of links in the document.
    total: usize,
}

impl Links {
    /// Adds the result of a run: the number of links, and the response statuses by link.
    pub(super) fn add(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).context("schemathesis has written no links")?;
        let links: Value = serde_json::from_str(&text)?;
        self.total = links["total"].as_u64().and_then(|total| total.try_into().ok()).context("no total")?;
        for (link, answers) in links["followed"].as_object().into_iter().flatten() {
            let has_arrived = |status: &Value| matches!(status.as_u64(), Some(200 | 304));
            let arrived = answers.as_array().is_some_and(|answers| answers.iter().any(has_arrived));
            *self.followed.entry(link.clone()).or_default() |= arrived;
        }
        Ok(())
    }

    /// Fails if too few links were followed.
    pub(super) fn judge(&self) -> Outcome {
        let all = self.total;
        let followed = self.followed.len();
        let arrived = self.followed.values().filter(|arrived| **arrived).count();
        eprintln!("{followed} of {all} links were followed, {arrived} of them to an existing object");
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
