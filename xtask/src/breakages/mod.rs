//! `cargo xtask break`: breaks each rule in a known way and expects its test to fail.
//!
//! A test that cannot fail proves nothing. `xtask/breakages.txt` lists the breakages; each is applied alone, in a copy
//! of the repository.

mod list;
mod working_copy;

use std::time::Instant;

use anyhow::{Context, Result};

use crate::steps::Outcome;
use crate::tree::Tree;
use crate::words::{Usage, Words};

pub(crate) use list::{Breakage, parse};
use working_copy::{Verdict, WorkingCopy};

pub(crate) const LIST: &str = "xtask/breakages.txt";

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let wanted = words.next().unwrap_or_default();
    words.done()?;
    let chosen = run(|breakage| breakage.names(&wanted))?;
    chosen.ok_or_else(|| Usage::new(&format!("no breakage names this: {wanted}")).into())
}

/// Tries every breakage of the list.
pub(crate) fn run_all() -> Result<Outcome> {
    let outcome = run(|_| true)?;
    Ok(outcome.unwrap_or_else(|| Outcome::Skipped(format!("nothing is listed: {LIST}"))))
}

/// None if no breakage is chosen.
fn run(is_chosen: impl Fn(&Breakage) -> bool) -> Result<Option<Outcome>> {
    let tree = Tree::load()?;
    let text =
        std::fs::read_to_string(tree.root().join(LIST)).with_context(|| format!("cannot read: {LIST}"))?;
    let mut breakages = parse(&text)?;
    breakages.retain(is_chosen);
    if breakages.is_empty() {
        return Ok(None);
    }
    let working_copy = WorkingCopy::open(&tree)?;
    let mut failed = 0;
    for breakage in &breakages {
        let begin = Instant::now();
        let verdict = working_copy.try_breakage(breakage);
        let row = row(breakage, &verdict, begin.elapsed().as_secs_f64());
        failed += usize::from(!matches!(verdict, Ok(Verdict::Failed | Verdict::Hung)));
        println!("{row}");
    }
    if failed == 0 {
        println!("{} rules broken, and every test noticed", breakages.len());
        return Ok(Some(Outcome::Passed));
    }
    Ok(Some(Outcome::Failed(format!("{failed} of {} breakages were not noticed", breakages.len()))))
}

fn row(breakage: &Breakage, verdict: &Result<Verdict>, seconds: f64) -> String {
    let verdict = match verdict {
        Ok(Verdict::Failed) => "ok: the test fails".to_owned(),
        Ok(Verdict::Hung) => "ok: the test does not end".to_owned(),
        Ok(Verdict::Passed) => "FAILED: the test still passes".to_owned(),
        Err(problem) => format!("FAILED: {problem:#}"),
    };
    format!("{:<60} {seconds:>6.1} s  {verdict}  ({})", breakage.test, breakage.why)
}
