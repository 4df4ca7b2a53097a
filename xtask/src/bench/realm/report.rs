//! The report of the realm benchmark: each number with its goal.

use std::fmt::Write as _;

use serde_json::Value;

use super::{FigurePlan, Goal, GoalLimit};
use crate::steps::Outcome;

pub(super) struct RealmReport {
    pub(super) setting: String,
    pub(super) figures: Vec<Figure>,
}

/// A figure that was measured, or the reason why not.
pub(super) struct Figure {
    name: &'static str,
    numbers: Result<Vec<MeasuredNumber>, String>,
}

/// A number and its goal.
struct MeasuredNumber {
    goal: Goal,
    /// All rounds. The largest counts.
    values: Vec<f64>,
}

impl Figure {
    pub(super) fn of(plan: &FigurePlan, result: &Result<Value, String>) -> Self {
        let number = |goal: &Goal, result: &Value| {
            let member = &result[goal.member];
            let values: Vec<_> = match member.as_array() {
                Some(list) => list.iter().filter_map(Value::as_f64).collect(),
                None => member.as_f64().into_iter().collect(),
            };
            let missing = || format!("not in the result: {}", goal.member);
            (!values.is_empty()).then_some(MeasuredNumber { goal: *goal, values }).ok_or_else(missing)
        };
        let numbers = match result {
            Ok(result) => plan.goals.iter().map(|goal| number(goal, result)).collect(),
            Err(error) => Err(error.lines().next().unwrap_or_default().to_owned()),
        };
        Self { name: plan.name, numbers }
    }

    fn lines(&self) -> String {
        match &self.numbers {
            Ok(numbers) => numbers.iter().map(|number| number.line(self.name)).collect(),
            Err(error) => format!("| {} | | not measured: {error} | | |\n", self.name),
        }
    }

    fn misses(&self) -> Vec<String> {
        match &self.numbers {
            Ok(numbers) => {
                let missed = numbers.iter().filter(|number| !number.is_met());
                missed.map(|number| number.line(self.name)).collect()
            }
            Err(error) => vec![format!("{}: not measured: {error}", self.name)],
        }
    }
}

impl MeasuredNumber {
    fn largest(&self) -> f64 {
        self.values.iter().copied().fold(f64::MIN, f64::max)
    }

    fn is_met(&self) -> bool {
        match self.goal.limit {
            GoalLimit::AtMost(limit) => self.largest() <= limit,
            GoalLimit::AtLeast(limit) => self.largest() >= limit,
            GoalLimit::None => true,
        }
    }

    fn line(&self, name: &str) -> String {
        let Goal { member, unit, limit } = self.goal;
        let shown =
            |value: f64| if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") };
        let all: Vec<_> = self.values.iter().map(|value| shown(*value)).collect();
        let value = match all.as_slice() {
            [one] => one.clone(),
            all => format!("{} ({})", shown(self.largest()), all.join(", ")),
        };
        let met = if self.is_met() { "met" } else { "MISSED" };
        let (goal, met) = match limit {
            GoalLimit::AtMost(limit) => (format!("at most {limit}"), met),
            GoalLimit::AtLeast(limit) => (format!("at least {limit}"), met),
            GoalLimit::None => (String::new(), ""),
        };
        let member = member.replace('_', " ");
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("| {name} | {member} | {value}{unit} | {goal} | {met} |\n")
    }
}

impl RealmReport {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Measured on: {}.\n\n| figure | number | measured | goal | |\n|---|---|---:|---:|---|\n",
            self.setting
        );
        for figure in &self.figures {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", figure.lines());
        }
        text.trim_end().to_owned()
    }

    /// Fails where a goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let misses: Vec<_> = self.figures.iter().flat_map(Figure::misses).collect();
        if misses.is_empty() { Outcome::Passed } else { Outcome::Failed(misses.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FIGURES, FigurePlan};
    use super::*;
    use serde_json::json;

    fn figure(result: &Result<Value, String>) -> Figure {
        let plan: &FigurePlan = &FIGURES[0];
        Figure::of(plan, result)
    }

    fn report(result: &Result<Value, String>) -> RealmReport {
        RealmReport { setting: "A".to_owned(), figures: vec![figure(result)] }
    }

    #[test]
    fn the_longest_gap_is_compared_with_its_goal() {
        let met = report(&Ok(json!({ "gaps": [1.25, 1.5, 1.0] })));
        assert_eq!(met.judge(), Outcome::Passed);
        let line = "| longest gap, a server is lost | gaps | 1.50 (1.25, 1.50, 1) s | at most 1.5 | met |";
        assert!(met.text().ends_with(line), "{}", met.text());
        let missed = report(&Ok(json!({ "gaps": [1.51] })));
        assert!(matches!(missed.judge(), Outcome::Failed(why) if why.contains("MISSED")));
    }

    #[test]
    fn a_figure_that_was_not_measured_fails() {
        for result in [Err("the clients failed\nmore".to_owned()), Ok(json!({})), Ok(json!({ "gaps": [] }))] {
            let report = report(&result);
            assert!(report.text().contains("| not measured: "), "{}", report.text());
            assert!(matches!(report.judge(), Outcome::Failed(_)));
        }
    }
}
