//! Actions: each is carried out once, and only for work that has started.

use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, LogEntry};

pub(super) fn check(effects: &[Effect], log: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut actions, mut done) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
    for effect in effects {
        if !actions.insert(&effect.action) {
            found.push(format!("carried out twice: {effect:?}"));
        }
        *done.entry(&effect.machine).or_default() += 1;
    }
    let (started, completed) = (count(log, "started"), count(log, "completed"));
    for machine in done.keys().chain(started.keys()).collect::<BTreeSet<_>>() {
        let number = |counts: &BTreeMap<&str, usize>| counts.get(machine).copied().unwrap_or(0);
        let (started, done, completed) = (number(&started), number(&done), number(&completed));
        if !(completed <= done && done <= started) {
            found.push(format!("{machine}: {started} started, {done} carried out, {completed} completed"));
        }
    }
    found
}

/// The number of entries of a kind that name each machine.
fn count<'a>(log: &'a [LogEntry], kind: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.kind == kind) {
        for machine in &entry.machines {
            let name = machine.rsplit_once('/').map_or(machine.as_str(), |(_, name)| name);
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}
