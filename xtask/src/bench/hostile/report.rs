//! What was measured, as a text, and whether it meets its goal.

use std::fmt::Write;

use crate::bench::metadata::table::Spread;
use crate::steps::Outcome;

/// Goal for the slowest answers beside the attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// So many times as long as without it.
    Ratio(f64),
    /// So many milliseconds.
    Milliseconds(f64),
}

/// How long the good machines wait for their answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
}

/// What the hostile machine did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attack {
    pub(super) requests: f64,
    pub(super) connections: f64,
    pub(super) half_open: f64,
}

/// Both halves of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) alone: Latency,
    pub(super) beside: Latency,
    pub(super) attack: Attack,
}

/// All rounds of one setting.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) goal: Goal,
    pub(super) rounds: Vec<Round>,
}

pub(super) struct Report {
    pub(super) setting: String,
    pub(super) rows: Vec<Row>,
}

impl Row {
    fn spread(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure)).unwrap_or(Spread { min: 0.0, median: 0.0, max: 0.0 })
    }

    /// The figure that the goal is about, and its limit.
    fn figure(&self) -> (Spread, f64) {
        match self.goal {
            Goal::Ratio(max) => {
                (self.spread(|round| round.beside.p99_microseconds / round.alone.p99_microseconds), max)
            }
            Goal::Milliseconds(max) => (self.spread(|round| round.beside.p99_microseconds / 1e3), max),
        }
    }

    fn is_met(&self) -> bool {
        let (figure, max) = self.figure();
        figure.median < max
    }

    fn lines(&self) -> String {
        let median = |figure: fn(&Round) -> f64| self.spread(figure).median;
        let mut text = String::new();
        let _ = writeln!(
            text,
            "| {} | alone | {:.0} | {:.0} | | | |",
            self.title,
            median(|round| round.alone.p50_microseconds),
            median(|round| round.alone.p99_microseconds),
        );
        let _ = writeln!(
            text,
            "| | beside it | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            median(|round| round.beside.p50_microseconds),
            median(|round| round.beside.p99_microseconds),
            median(|round| round.attack.requests),
            median(|round| round.attack.connections),
            median(|round| round.attack.half_open),
        );
        text
    }

    fn goal(&self) -> String {
        let (Spread { min, median, max }, limit) = self.figure();
        let met = if self.is_met() { "met" } else { "MISSED" };
        let figure = match self.goal {
            Goal::Ratio(_) => "p99 beside the hostile machine, in parts of p99 alone",
            Goal::Milliseconds(_) => "p99 of operators beside hostile clients, in milliseconds",
        };
        format!(
            "- {figure}, {}: {median:.2} ({min:.2} to {max:.2}) (goal: less than {limit:.2}): {met}",
            self.title
        )
    }
}

impl Report {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Measured on: {}.\n\n\
             | the hostile machine has | good machines | p50 µs | p99 µs | its requests | its connections | half-open at the end |\n\
             |---|---|---:|---:|---:|---:|---:|\n",
            self.setting
        );
        self.rows.iter().for_each(|row| text.push_str(&row.lines()));
        text.push('\n');
        let goals: Vec<_> = self.rows.iter().map(Row::goal).collect();
        text.push_str(&goals.join("\n"));
        text
    }

    /// Fails where the goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.is_met()).map(Row::goal).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(beside: f64) -> Report {
        let latency = |p99_microseconds| Latency { p50_microseconds: 50.0, p99_microseconds };
        let attack = Attack { requests: 2_000.0, connections: 900.0, half_open: 16.0 };
        let round = Round { alone: latency(100.0), beside: latency(beside), attack };
        Report {
            setting: "A".to_owned(),
            rows: vec![Row { title: "limits", goal: Goal::Ratio(2.0), rounds: vec![round; 3] }],
        }
    }

    #[test]
    fn a_goal_is_met_below_its_limit() {
        assert_eq!(report(199.0).judge(), Outcome::Passed);
        assert!(matches!(report(200.0).judge(), Outcome::Failed(why) if why.contains("MISSED")));
    }

    #[test]
    fn operators_are_answered_within_a_time() {
        let mut report = report(99_000.0);
        report.rows[0].goal = Goal::Milliseconds(100.0);
        assert_eq!(report.judge(), Outcome::Passed);
        report.rows[0].goal = Goal::Milliseconds(99.0);
        assert!(matches!(report.judge(), Outcome::Failed(why) if why.contains("in milliseconds")));
    }

    #[test]
    fn a_text_shows_both_halves() {
        let text = report(150.0).text();
        assert!(text.contains(
            "\n| limits | alone | 50 | 100 | | | |\n| | beside it | 50 | 150 | 2000 | 900 | 16 |\n"
        ));
        assert!(text.ends_with("limits: 1.50 (1.50 to 1.50) (goal: less than 2.00): met"), "{text}");
    }
}
