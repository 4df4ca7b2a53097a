//! Seeds that have failed in the past, and runs of many seeds.

use std::fmt::Write as _;

use crate::{Observations, Violation, run};

/// Seeds that have failed in the past. Each line has a seed, and after `#` the reason.
const KNOWN: &str = include_str!("../seeds.txt");

/// Lines of a history that a report shows.
const LINES_MAX: usize = 400;

/// Seeds that have failed in the past.
pub fn known() -> Vec<u64> {
    let seed = |line: &str| line.split('#').next().and_then(|number| number.trim().parse().ok());
    KNOWN.lines().filter_map(seed).collect()
}

/// Runs seeds from `first` on, and adds their observations.
///
/// # Errors
/// The first broken promise.
pub fn run_all(seeds: impl IntoIterator<Item = u64>) -> Result<Observations, Box<Violation>> {
    let mut total = Observations::new();
    for seed in seeds {
        for (what, count) in run(seed, None)? {
            *total.entry(what).or_default() += count;
        }
    }
    Ok(total)
}

/// A broken promise for people: the promise, the history, and the command that repeats it.
pub fn report(violation: &Violation) -> String {
    let Violation { seed, what, history } = violation;
    let skipped = history.len().saturating_sub(LINES_MAX);
    let mut text = format!("seed {seed} breaks a promise\n  {what}\n\nhistory");
    if skipped > 0 {
        write!(text, ", without the first {skipped} steps").expect("a String takes everything");
    }
    text.push_str(":\n");
    for line in &history[skipped..] {
        text.push_str(line);
        text.push('\n');
    }
    write!(text, "\nto repeat it: cargo xtask sim --from {seed} --seeds 1\nto keep it: add a line to sim/seeds.txt: {seed} # {what}")
        .expect("a String takes everything");
    text
}
