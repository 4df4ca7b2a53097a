//! The power is cut: every state that the disk may be in then is opened, and everything that was answered is there.
//!
//! After ALICE (Pillai and others, OSDI 2014): the writes and syncs of a real run are traced, and the states that a cut at any
//! moment may leave are built from them. A second cut comes while the first is being recovered from. The control is the same
//! journal without a sync per commit: if that loses nothing, the test is blind.

use std::path::Path;

use forewarn_store::SyncMode;
use tempfile::TempDir;

use crate::durability::disk::{CUTS, Cut, Disk, scratch};
use crate::durability::trace::{Step, trace};
use crate::durability::writer::{command, inspect};
use forewarn_testkit::Random;

/// Commits in the traced run.
const COMMITS: u64 = 90;
/// Commits after the first cut, before the second.
const COMMITS_AFTER_CUT: u64 = 12;
/// States that are built from one recovery.
const SECOND_CUTS: usize = 12;
/// Calls of the first start, each of which is cut at.
const FIRST_CALLS: usize = 60;

/// How many states are tried; a longer run sets it.
fn states_wanted() -> usize {
    std::env::var("FOREWARN_POWER_STATES").ok().and_then(|count| count.parse().ok()).unwrap_or(320)
}

/// A run that was traced: on what disk it began, what it asked, and what had been answered before.
struct Run {
    directory: TempDir,
    before: Disk,
    steps: Vec<Step>,
    acked_before: u64,
}

impl Run {
    fn traced(directory: TempDir, acked_before: u64, commits: u64, sync: SyncMode) -> Self {
        let before = Disk::of(directory.path());
        let aside = scratch();
        let acks = aside.path().join("acks");
        let steps = trace(&command(directory.path(), &acks, commits, sync), directory.path(), &acks);
        Self { directory, before, steps, acked_before }
    }

    /// The disk after a cut before the step of that number, in a directory of its own, and what was answered before.
    fn cut_at(&self, moment: usize, random: &mut Random) -> (TempDir, u64) {
        let mut disk = self.before.clone();
        let mut acked = self.acked_before;
        for step in &self.steps[..moment] {
            disk.apply(step);
            if let Step::Ack(number) = step {
                acked = *number;
            }
        }
        let cut = CUTS[random.index(CUTS.len())];
        let directory = scratch();
        disk.cut(cut, random).write_to(self.directory.path(), directory.path());
        (directory, acked)
    }

    fn random_moment(&self, random: &mut Random) -> usize {
        random.index(self.steps.len() + 1)
    }
}

/// A copy of a directory: what is looked at is changed by looking.
fn copy_of(directory: &Path) -> TempDir {
    let copy = scratch();
    Disk::of(directory).write_to(directory, copy.path());
    copy
}

/// promise: D1, D4, C5
#[test]
#[ignore = "it needs strace"]
fn whatever_was_answered_survives_a_power_cut_and_a_second_one() {
    let mut random = Random::new(1);
    let wanted = states_wanted();
    let first = Run::traced(scratch(), 0, COMMITS, SyncMode::EachCommit);
    let commits = first.steps.iter().filter(|step| matches!(step, Step::Ack(_))).count();
    assert!(commits > 50, "{commits}");
    let (mut single, mut double, mut lost) = (0, 0, Vec::new());
    let singles = (wanted * 3 / 5).max(FIRST_CALLS);
    for number in 0..singles {
        let moment = if number < FIRST_CALLS { number } else { first.random_moment(&mut random) };
        let (directory, acked) = first.cut_at(moment, &mut random);
        single += 1;
        if let Err(problem) = inspect(directory.path(), acked) {
            lost.push(format!("cut at {moment}: {problem}"));
        }
    }
    while single + double < wanted {
        let moment =
            if double % 3 == 0 { random.index(FIRST_CALLS) } else { first.random_moment(&mut random) };
        let (directory, acked) = first.cut_at(moment, &mut random);
        let (directory, acked) = (copy_of(directory.path()), acked);
        let second = Run::traced(directory, acked, COMMITS_AFTER_CUT, SyncMode::EachCommit);
        for _ in 0..SECOND_CUTS {
            let again = second.random_moment(&mut random);
            let (directory, acked) = second.cut_at(again, &mut random);
            double += 1;
            if let Err(problem) = inspect(directory.path(), acked) {
                lost.push(format!("cut at {moment}, then at {again}: {problem}"));
            }
        }
    }
    eprintln!(
        "{} calls, {single} states after one cut, {double} after two: {} wrong",
        first.steps.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "{lost:#?}");
}

/// promise: D4
#[test]
#[ignore = "it needs strace"]
fn a_log_that_is_cut_short_after_a_kill_is_noticed_at_whatever_moment_the_kill_came() {
    let mut random = Random::new(3);
    let run = Run::traced(scratch(), 0, COMMITS, SyncMode::EachCommit);
    let (mut short, mut damaged, mut complete) = (0, 0, 0);
    for _ in 0..states_wanted() / 2 {
        let moment = random.index(run.steps.len() + 1);
        let (mut disk, mut acked) = (run.before.clone(), 0);
        for step in &run.steps[..moment] {
            disk.apply(step);
            if let Step::Ack(number) = step {
                acked = *number;
            }
        }
        let directory = scratch();
        disk.cut(Cut::Kept, &mut random).write_to(run.directory.path(), directory.path());
        let log = directory.path().join("journal.db-wal");
        let Ok(content) = std::fs::read(&log) else { continue };
        std::fs::write(&log, &content[..random.index(content.len() + 1)]).unwrap();
        match inspect(directory.path(), acked) {
            Ok(_) => complete += 1,
            Err(problem) if problem.contains("has lost acknowledged commits") => short += 1,
            // The kill came during a checkpoint: some pages are newer than what is left of the log, records or entries.
            Err(problem) if problem.contains("the journal is damaged") => damaged += 1,
            Err(problem) if problem.contains("the audit log has lost entries") => damaged += 1,
            Err(problem) => panic!("cut at {moment}: {problem}"),
        }
    }
    eprintln!(
        "logs that were cut short: {short} noticed, {damaged} damaged, {complete} complete all the same"
    );
    assert!(short > 20 && short > damaged && complete > 0, "{short} {damaged} {complete}");
}

/// promise: D1
#[test]
#[ignore = "it needs strace"]
fn without_a_sync_per_commit_a_power_cut_loses_what_was_answered() {
    let mut random = Random::new(2);
    let run = Run::traced(scratch(), 0, COMMITS, SyncMode::Later);
    let states = 100;
    let lost = (0..states).filter(|_| {
        let (directory, acked) = run.cut_at(run.random_moment(&mut random), &mut random);
        // Not what is refused: what is opened, and lacks something.
        inspect(directory.path(), acked).is_err_and(|problem| problem.contains("acknowledged"))
    });
    let lost = lost.count();
    eprintln!("the control: {lost} of {states} states have lost something");
    assert!(lost >= 10, "the test is blind: {lost}");
}
