//! The rounds as a table: medians and spread.

use std::fmt::Write;

use super::rounds::{PollRow, Sample};

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) struct Spread {
    pub(in crate::bench) min: f64,
    pub(in crate::bench) median: f64,
    pub(in crate::bench) max: f64,
}

impl Spread {
    /// None without values.
    pub(in crate::bench) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self { min, median, max })
    }

    pub(in crate::bench) fn text(self) -> String {
        format!("{:.2} ({:.2} to {:.2})", self.median, self.min, self.max)
    }
}

/// A figure of one server.
pub(super) type Figure = fn(&Sample) -> f64;

/// Each column, and how many digits behind the point it has.
const COLUMNS: [(Figure, usize); 4] = [
    (|sample| sample.requests_per_second, 0),
    (|sample| sample.p50_microseconds, 0),
    (|sample| sample.p99_microseconds, 0),
    (|sample| sample.cpu_microseconds, 2),
];

impl PollRow {
    /// Ours divided by theirs, in each round.
    pub(in crate::bench) fn ratio(&self, figure: Figure) -> Option<Spread> {
        let ratios = self.rounds.iter().map(|round| figure(&round.ours) / figure(&round.theirs));
        Spread::of(ratios)
    }
}

pub(super) fn table(rows: &[PollRow]) -> String {
    let mut text = String::from(
        "| polling | server | requests/s | p50 µs | p99 µs | CPU µs per request | generator busy |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            row.rounds.iter().map(|round| (round.ours, round.theirs)).unzip();
        let _ = writeln!(text, "| {} | forewarn |{}", row.polling.title, cells(&ours));
        let _ = writeln!(text, "| | nginx |{}", cells(&theirs));
        let ratios = COLUMNS.map(|(figure, _)| row.ratio(figure).map_or("-".to_owned(), Spread::text));
        let _ = writeln!(text, "| | forewarn / nginx | {} | |", ratios.join(" | "));
    }
    text
}

fn cells(samples: &[Sample]) -> String {
    let median = |figure: Figure| Spread::of(samples.iter().map(figure)).map_or(0.0, |spread| spread.median);
    let mut text = String::new();
    for (figure, digits) in COLUMNS {
        let _ = write!(text, " {:.digits$} |", median(figure));
    }
    let _ = write!(text, " {:.0} % |", median(|sample| sample.generator_percent));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        let spread = |min, median, max| Some(Spread { min, median, max });
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), spread(1.0, 2.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), spread(1.0, 2.5, 4.0));
        assert_eq!(Spread::of([7.0]), spread(7.0, 7.0, 7.0));
        assert_eq!(Spread::of([]), None);
    }
}
