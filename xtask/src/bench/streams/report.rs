//! The report of the streams benchmark, and its goal.

use std::fmt::Write;

use anyhow::Result;

use crate::bench::metadata::table::Spread;
use crate::steps::Outcome;

/// The slowest commands beside an apply, relative to those without one.
const RATIO_MAX: f64 = 2.0;

/// Something of each build: the measured one, and the one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerBuild<T> {
    pub(super) new: T,
    pub(super) base: Option<T>,
}

/// Response times of commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CommandTimes {
    pub(super) commands: f64,
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
    pub(super) max_microseconds: f64,
}

/// The figures of one build in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CommandSample {
    pub(super) times: CommandTimes,
    pub(super) commands_per_second: f64,
    /// CPU time of the server for each command.
    pub(super) cpu_microseconds: f64,
    /// CPU use of the clients.
    pub(super) generator_percent: f64,
}

/// Commands in one cluster, without an apply in another one and with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ApplyRound {
    pub(super) alone: CommandSample,
    pub(super) beside: CommandTimes,
    pub(super) apply_seconds: f64,
}

/// All rounds with that many clusters.
pub(super) struct CommandRow {
    pub(super) clusters: u32,
    pub(super) rounds: Vec<PerBuild<CommandSample>>,
}

/// All rounds with an apply.
pub(super) struct InterferenceRow {
    /// Before there is a large fleet.
    pub(super) before: PerBuild<CommandSample>,
    pub(super) rounds: Vec<PerBuild<ApplyRound>>,
}

pub(super) struct StreamsReport {
    pub(super) setting: String,
    pub(super) machines: u32,
    pub(super) added: u32,
    pub(super) commands: Vec<CommandRow>,
    pub(super) interference: InterferenceRow,
}

/// A figure of a sample, and its digits behind the point.
type Column<T> = (fn(&T) -> f64, usize);

const COMMAND_COLUMNS: [Column<CommandSample>; 5] = [
    (|sample| sample.commands_per_second, 0),
    (|sample| sample.times.p50_microseconds, 0),
    (|sample| sample.times.p99_microseconds, 0),
    (|sample| sample.times.max_microseconds, 0),
    (|sample| sample.cpu_microseconds, 1),
];

const ALONE_COLUMNS: [Column<CommandSample>; 5] = [
    (|sample| sample.times.commands, 0),
    (|sample| sample.times.p50_microseconds, 0),
    (|sample| sample.times.p99_microseconds, 0),
    (|sample| sample.times.max_microseconds, 0),
    (|sample| sample.cpu_microseconds, 1),
];

/// The CPU time beside an apply is mostly that of the apply.
const BESIDE_COLUMNS: [Column<CommandTimes>; 4] = [
    (|times| times.commands, 0),
    (|times| times.p50_microseconds, 0),
    (|times| times.p99_microseconds, 0),
    (|times| times.max_microseconds, 0),
];

const RATIO_COLUMNS: [fn(&ApplyRound) -> f64; 2] =
    [|round| round.beside.p50_microseconds / round.alone.times.p50_microseconds, p99_ratio];

fn p99_ratio(round: &ApplyRound) -> f64 {
    round.beside.p99_microseconds / round.alone.times.p99_microseconds
}

impl<T> PerBuild<T> {
    /// The same for each build, the base first.
    pub(super) fn each<'a, U>(&'a self, mut of: impl FnMut(&'a T) -> Result<U>) -> Result<PerBuild<U>> {
        let base = self.base.as_ref().map(&mut of).transpose()?;
        Ok(PerBuild { new: of(&self.new)?, base })
    }
}

/// The samples of one build, by its name.
fn by_build<T: Copy>(rounds: &[PerBuild<T>]) -> Vec<(&'static str, Vec<T>)> {
    let base: Vec<_> = rounds.iter().filter_map(|round| round.base).collect();
    let new = rounds.iter().map(|round| round.new).collect();
    if base.is_empty() { vec![("forewarn", new)] } else { vec![("base", base), ("new", new)] }
}

fn spread<T>(samples: &[T], figure: fn(&T) -> f64) -> Spread {
    Spread::of(samples.iter().map(figure)).unwrap_or(Spread { min: 0.0, median: 0.0, max: 0.0 })
}

/// Medians, each in a cell.
fn medians<T>(samples: &[T], columns: &[Column<T>]) -> String {
    let mut text = String::new();
    for (figure, digits) in columns {
        let _ = write!(text, " {:.digits$} |", spread(samples, *figure).median);
    }
    text
}

/// The new build divided by the base, in each round.
fn ratios<T>(rounds: &[PerBuild<T>], columns: &[Column<T>]) -> Option<String> {
    let mut text = String::new();
    for (figure, _) in columns {
        let ratio = |round: &PerBuild<T>| Some(figure(&round.new) / figure(round.base.as_ref()?));
        let _ = write!(text, " {} |", Spread::of(rounds.iter().filter_map(ratio))?.text());
    }
    Some(text)
}

impl CommandRow {
    fn lines(&self) -> String {
        let mut text = String::new();
        for (number, (name, samples)) in by_build(&self.rounds).iter().enumerate() {
            let title = if number == 0 { format!(" {}", self.clusters) } else { String::new() };
            let busy = spread(samples, |sample| sample.generator_percent).median;
            let _ = writeln!(text, "|{title} | {name} |{} {busy:.0} % |", medians(samples, &COMMAND_COLUMNS));
        }
        if let Some(ratios) = ratios(&self.rounds, &COMMAND_COLUMNS) {
            let _ = writeln!(text, "| | new / base |{ratios} |");
        }
        text
    }
}

impl InterferenceRow {
    fn lines(&self) -> String {
        let mut text = String::new();
        for ((name, rounds), (_, before)) in by_build(&self.rounds).iter().zip(by_build(&[self.before])) {
            let alone: Vec<_> = rounds.iter().map(|round| round.alone).collect();
            let beside: Vec<_> = rounds.iter().map(|round| round.beside).collect();
            let _ = writeln!(text, "| {name} | is empty |{} |", medians(&before, &ALONE_COLUMNS));
            let _ = writeln!(text, "| | does nothing |{} |", medians(&alone, &ALONE_COLUMNS));
            let apply = spread(rounds, |round| round.apply_seconds).median;
            let _ =
                writeln!(text, "| | applies a fleet |{} | {apply:.1} |", medians(&beside, &BESIDE_COLUMNS));
            let ratios = RATIO_COLUMNS.map(|figure| spread(rounds, figure).text());
            let _ = writeln!(text, "| | applies / does nothing | | {} | | | |", ratios.join(" | "));
        }
        text
    }

    /// The ratio of the goal, of the measured build.
    fn ratio(&self) -> Spread {
        let rounds: Vec<_> = self.rounds.iter().map(|round| round.new).collect();
        spread(&rounds, p99_ratio)
    }

    fn is_met(&self) -> bool {
        self.ratio().median <= RATIO_MAX
    }

    fn goal(&self) -> String {
        let met = if self.is_met() { "met" } else { "MISSED" };
        format!(
            "- p99 of commands while another cluster applies a fleet, in parts of p99 without: {} \
             (goal: at most {RATIO_MAX:.2}): {met}",
            self.ratio().text()
        )
    }
}

impl StreamsReport {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Measured on: {}.\n\n\
             | clusters | build | commands/s | p50 µs | p99 µs | max µs | CPU µs per command | generator busy |\n\
             |---:|---|---:|---:|---:|---:|---:|---:|\n",
            self.setting
        );
        self.commands.iter().for_each(|row| text.push_str(&row.lines()));
        let _ = write!(
            text,
            "\nThe other cluster has {} machines, and applies a fleet with {} more.\n\n\
             | build | the other cluster | commands | p50 µs | p99 µs | max µs | CPU µs per command | apply s |\n\
             |---|---|---:|---:|---:|---:|---:|---:|\n",
            self.machines, self.added
        );
        text.push_str(&self.interference.lines());
        text.push('\n');
        text.push_str(&self.interference.goal());
        text
    }

    /// Fails where the goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let row = &self.interference;
        if row.is_met() { Outcome::Passed } else { Outcome::Failed(row.goal()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(p99_microseconds: f64) -> CommandTimes {
        CommandTimes { commands: 900.0, p50_microseconds: 50.0, p99_microseconds, max_microseconds: 700.0 }
    }

    fn report(beside: f64, base: Option<f64>) -> StreamsReport {
        let sample = |commands_per_second| CommandSample {
            times: times(100.0),
            commands_per_second,
            cpu_microseconds: 80.0,
            generator_percent: 30.0,
        };
        let round = |beside| ApplyRound { alone: sample(90.0), beside: times(beside), apply_seconds: 3.0 };
        let command = PerBuild { new: sample(3_000.0), base: base.map(sample) };
        let before = PerBuild { new: sample(90.0), base: base.map(sample) };
        let apply = PerBuild { new: round(beside), base: base.map(round) };
        StreamsReport {
            setting: "A".to_owned(),
            machines: 5_000,
            added: 1_000,
            commands: vec![CommandRow { clusters: 4, rounds: vec![command; 3] }],
            interference: InterferenceRow { before, rounds: vec![apply; 3] },
        }
    }

    #[test]
    fn a_goal_is_met_up_to_its_limit() {
        assert_eq!(report(200.0, Some(900.0)).judge(), Outcome::Passed);
        assert!(matches!(report(201.0, None).judge(), Outcome::Failed(why) if why.contains("MISSED")));
    }

    #[test]
    fn a_text_shows_one_build() {
        let text = report(150.0, None).text();
        assert!(
            text.contains("|\n| 4 | forewarn | 3000 | 50 | 100 | 700 | 80.0 | 30 % |\n\nThe other"),
            "{text}"
        );
        let rows = "|\n| forewarn | is empty | 900 | 50 | 100 | 700 | 80.0 | |\n\
                    | | does nothing | 900 | 50 | 100 | 700 | 80.0 | |\n\
                    | | applies a fleet | 900 | 50 | 150 | 700 | | 3.0 |\n\
                    | | applies / does nothing | | 1.00 (1.00 to 1.00) | 1.50 (1.50 to 1.50) | | | |\n\n- p99";
        assert!(text.contains(rows), "{text}");
        assert!(text.ends_with("1.50 (1.50 to 1.50) (goal: at most 2.00): met"), "{text}");
    }

    #[test]
    fn two_builds_have_a_ratio() {
        let text = report(150.0, Some(1_500.0)).text();
        let same = "1.00 (1.00 to 1.00)";
        let rows = format!(
            "|\n| 4 | base | 1500 | 50 | 100 | 700 | 80.0 | 30 % |\n| | new | 3000 | 50 | 100 | 700 | 80.0 | 30 % |\n\
             | | new / base | 2.00 (2.00 to 2.00) | {same} | {same} | {same} | {same} | |\n"
        );
        assert!(text.contains(&rows), "{text}");
        assert!(text.contains("| base | is empty |") && text.contains("| new | is empty |"), "{text}");
    }
}
