//! The alerts and the dashboard of `deploy/monitoring`: `promtool` accepts them, and the tests of the alerts pass.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::{Outcome, status};
use crate::tree;
use crate::unpacked::PROMTOOL;

const DIRECTORY: &str = "deploy/monitoring";
const RULES: &str = "forewarn.rules.yml";
const TESTS: &str = "forewarn.rules.test.yml";
const DASHBOARD: &str = "grafana-dashboard.json";

pub(crate) fn check() -> Result<Outcome> {
    let promtool = match PROMTOOL.find_or_unpack() {
        Ok(promtool) => promtool,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let directory = tree::root()?.join(DIRECTORY);
    let run = |words: &[&str], file: &Path| {
        let mut command = Command::new(&promtool);
        status(command.current_dir(&directory).args(words).arg(file))
    };
    let files = tempfile::tempdir()?;
    let queries = files.path().join("dashboard.rules.yml");
    let dashboard = std::fs::read_to_string(directory.join(DASHBOARD))?;
    let expressions = expressions(&dashboard).with_context(|| format!("{DIRECTORY}/{DASHBOARD}"))?;
    std::fs::write(&queries, recording_rules(&expressions))?;
    for (words, file) in [
        (&["check", "rules", "--lint-fatal"][..], Path::new(RULES)),
        (&["test", "rules"], Path::new(TESTS)),
        (&["check", "rules"], &queries),
    ] {
        let outcome = run(words, file)?;
        if outcome != Outcome::Passed {
            return Ok(Outcome::Failed(format!(
                "promtool {} {}: {outcome:?}",
                words.join(" "),
                file.display()
            )));
        }
    }
    Ok(Outcome::Passed)
}

/// The expressions of a dashboard.
fn expressions(dashboard: &str) -> Result<Vec<String>> {
    let dashboard: Value = serde_json::from_str(dashboard).context("invalid JSON")?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Option<Vec<_>> =
        targets.map(|target| target["expr"].as_str().map(str::to_owned)).collect();
    let expressions = expressions.context("a target without an expression")?;
    ensure!(!expressions.is_empty(), "no expressions");
    Ok(expressions)
}

/// Rules that record the expressions: `promtool` parses nothing else. A JSON text is a YAML text.
fn recording_rules(expressions: &[String]) -> String {
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    for (number, expression) in expressions.iter().enumerate() {
        let expression = Value::from(expression.as_str());
        // Writing to a string does not fail.
        writeln!(rules, "      - record: dashboard:{number}\n        expr: {expression}").unwrap_or_default();
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_of_a_dashboard_becomes_a_rule() {
        let dashboard = r#"{"panels":[{"type":"row"},{"targets":[{"expr":"a{b=\"c\"}"},{"expr":"d"}]}]}"#;
        let rules = recording_rules(&expressions(dashboard).unwrap());
        let expected = "groups:\n  - name: dashboard\n    rules:\n      - record: dashboard:0\n        \
                        expr: \"a{b=\\\"c\\\"}\"\n      - record: dashboard:1\n        expr: \"d\"\n";
        assert_eq!(rules, expected);
    }

    #[test]
    fn a_dashboard_without_expressions_is_an_error() {
        for dashboard in ["", "{}", r#"{"panels":[]}"#, r#"{"panels":[{"targets":[{}]}]}"#] {
            assert!(expressions(dashboard).is_err(), "{dashboard}");
        }
    }
}
