//! Writes: acknowledged ones are in the log once, in an order that their clients could have seen.

use std::collections::{BTreeMap, BTreeSet};

use super::{Approval, LogEntry, Write, WriteCommand};

/// Commands whose subject is never used for a second one.
const UNIQUE: [&str; 2] = ["admit_host", "remove_host"];

pub(super) fn check(writes: &[Write], approvals: &[Approval], log: &[LogEntry]) -> Vec<String> {
    let mut found = check_entries(writes, log);
    found.extend(check_order(writes));
    found.extend(check_uniqueness(writes, log));
    found.extend(check_approvals(approvals, log));
    found
}

/// The entry that an answer names is the entry of that command, and of no other answer.
fn check_entries(writes: &[Write], log: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    let mut named = BTreeSet::new();
    for write in writes {
        let Some(number) = write.answer.and_then(|answer| answer.entry) else { continue };
        let entry = usize::try_from(number).ok().and_then(|number| log.get(number.checked_sub(1)?));
        match entry {
            None => found.push(format!("acknowledged, and not in the log: {write:?}")),
            Some(entry) if entry.command.as_ref() != Some(&write.command) => {
                found.push(format!("acknowledged, and the log has another command: {write:?}, {entry:?}"));
            }
            Some(_) if !named.insert(number) => {
                found.push(format!("two answers name the entry {number}: {write:?}"));
            }
            Some(_) => {}
        }
    }
    found
}

/// A write that was answered before another was sent has the smaller number.
fn check_order(writes: &[Write]) -> Vec<String> {
    let answered = |write: &Write| write.answer.and_then(|answer| Some((answer.at, answer.entry?)));
    let mut by_answer: Vec<_> = writes.iter().filter_map(answered).collect();
    by_answer.sort_unstable();
    let mut by_sending: Vec<_> =
        writes.iter().filter_map(|write| Some((write.sent, answered(write)?.1, write))).collect();
    by_sending.sort_by_key(|(sent, ..)| *sent);
    let mut found = Vec::new();
    let (mut before, mut highest) = (by_answer.into_iter().peekable(), 0);
    for (sent, entry, write) in by_sending {
        while let Some((_, answered)) = before.next_if(|(at, _)| *at < sent) {
            highest = highest.max(answered);
        }
        if entry <= highest {
            found.push(format!(
                "sent after the answer with the entry {highest}, and before it in the log: {write:?}"
            ));
        }
    }
    found
}

/// A command that can be carried out once is in the log once; at least once, if it was acknowledged.
fn check_uniqueness(writes: &[Write], log: &[LogEntry]) -> Vec<String> {
    let mut counts = BTreeMap::<&WriteCommand, usize>::new();
    log.iter().filter_map(|entry| entry.command.as_ref()).for_each(|command| {
        *counts.entry(command).or_default() += 1;
    });
    let mut found = Vec::new();
    for write in writes.iter().filter(|write| UNIQUE.contains(&write.command.name.as_str())) {
        let count = counts.get(&write.command).copied().unwrap_or(0);
        let least = usize::from(write.answer.is_some());
        if count > 1 || count < least {
            found.push(format!("in the log {count} times: {write:?}"));
        }
    }
    found
}

/// An acknowledged approval is in the log.
fn check_approvals(approvals: &[Approval], log: &[LogEntry]) -> Vec<String> {
    let is_approved = |id: &String| {
        log.iter()
            .any(|entry| matches!(entry.kind.as_str(), "approved" | "started") && entry.events.contains(id))
    };
    let lost = approvals.iter().filter(|approval| approval.is_acknowledged && !is_approved(&approval.event));
    lost.map(|approval| format!("acknowledged, and not in the log: {approval:?}")).collect()
}
