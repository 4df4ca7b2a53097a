//! Actions: each is carried out once, and only for work that has started.

use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, LogEntry};

/// The first `before` effects happened before the log was read.
pub(super) fn check(effects: &[Effect], before: usize, log: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut actions, mut early, mut done) = (BTreeSet::new(), Counts::new(), Counts::new());
    for (place, effect) in effects.iter().enumerate() {
        if !actions.insert(&effect.action) {
            found.push(format!("carried out twice: {effect:?}"));
        }
        *early.entry(&effect.machine).or_default() += usize::from(place < before);
        *done.entry(&effect.machine).or_default() += 1;
    }
    let (started, completed) = (count(log, "started"), count(log, "completed"));
    for machine in done.keys().chain(started.keys()).collect::<BTreeSet<_>>() {
        let [started, early, done, completed] =
            [&started, &early, &done, &completed].map(|counts| counts.get(machine).copied().unwrap_or(0));
        if early > started || completed > done {
            found.push(format!("{machine}: {started} started, {done} carried out, {completed} completed"));
        }
    }
    found
}

type Counts<'a> = BTreeMap<&'a str, usize>;

/// The number of entries of a kind that name each machine.
fn count<'a>(log: &'a [LogEntry], kind: &str) -> Counts<'a> {
    let mut counts = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.kind == kind) {
        for machine in &entry.machines {
            let name = machine.rsplit_once('/').map_or(machine.as_str(), |(_, name)| name);
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}
