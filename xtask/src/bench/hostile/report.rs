//! The report of the hostile benchmark, and its goals.

use std::fmt::Write;

use crate::bench::metadata::table::Spread;
use crate::steps::Outcome;

/// The goal for the slowest responses during the attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LatencyGoal {
    /// Relative to the time without the attack.
    Ratio(f64),
    Milliseconds(f64),
}

/// The response times of the good VMs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PollLatency {
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
}

/// The activity of the hostile VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attack {
    pub(super) requests: f64,
    pub(super) connections: f64,
    pub(super) half_open: f64,
}

/// Both halves of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AttackRound {
    pub(super) alone: PollLatency,
    pub(super) beside: PollLatency,
    pub(super) attack: Attack,
}

/// All rounds of one setting.
pub(super) struct AttackRow {
    pub(super) title: &'static str,
    pub(super) goal: LatencyGoal,
    pub(super) rounds: Vec<AttackRound>,
}

pub(super) struct AttackReport {
    pub(super) setting: String,
    pub(super) rows: Vec<AttackRow>,
}

impl AttackRow {
    fn spread(&self, figure: impl Fn(&AttackRound) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure)).unwrap_or(Spread { min: 0.0, median: 0.0, max: 0.0 })
    }

    /// The figure of the goal, and its limit.
    fn figure(&self) -> (Spread, f64) {
        match self.goal {
            LatencyGoal::Ratio(max) => {
                (self.spread(|round| round.beside.p99_microseconds / round.alone.p99_microseconds), max)
            }
            LatencyGoal::Milliseconds(max) => (self.spread(|round| round.beside.p99_microseconds / 1e3), max),
        }
    }

    fn is_met(&self) -> bool {
        let (figure, max) = self.figure();
        figure.median < max
    }

    fn lines(&self) -> String {
        let median = |figure: fn(&AttackRound) -> f64| self.spread(figure).median;
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
            LatencyGoal::Ratio(_) => "p99 beside the hostile machine, in parts of p99 alone",
            LatencyGoal::Milliseconds(_) => "p99 of operators beside hostile clients, in milliseconds",
        };
        format!(
            "- {figure}, {}: {median:.2} ({min:.2} to {max:.2}) (goal: less than {limit:.2}): {met}",
            self.title
        )
    }
}

impl AttackReport {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Measured on: {}.\n\n\
             | the hostile machine has | good machines | p50 µs | p99 µs | its requests | its connections | half-open at the end |\n\
             |---|---|---:|---:|---:|---:|---:|\n",
            self.setting
        );
        self.rows.iter().for_each(|row| text.push_str(&row.lines()));
        text.push('\n');
        let goals: Vec<_> = self.rows.iter().map(AttackRow::goal).collect();
        text.push_str(&goals.join("\n"));
        text
    }

    /// Fails where the goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.is_met()).map(AttackRow::goal).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(beside: f64) -> AttackReport {
        let latency = |p99_microseconds| PollLatency { p50_microseconds: 50.0, p99_microseconds };
        let attack = Attack { requests: 2_000.0, connections: 900.0, half_open: 16.0 };
        let round = AttackRound { alone: latency(100.0), beside: latency(beside), attack };
        AttackReport {
            setting: "A".to_owned(),
            rows: vec![AttackRow { title: "limits", goal: LatencyGoal::Ratio(2.0), rounds: vec![round; 3] }],
        }
    }

    #[test]
    fn a_goal_is_met_below_its_limit() {
        assert_eq!(report(199.0).judge(), Outcome::Passed);
        assert!(matches!(report(200.0).judge(), Outcome::Failed(why) if why.contains("MISSED")));
    }

    #[test]
    fn operators_get_a_response_within_a_time() {
        let mut report = report(99_000.0);
        report.rows[0].goal = LatencyGoal::Milliseconds(100.0);
        assert_eq!(report.judge(), Outcome::Passed);
        report.rows[0].goal = LatencyGoal::Milliseconds(99.0);
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
