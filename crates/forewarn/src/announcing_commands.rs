//! Tests that every command that announces events can require notice.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use crate::Cli;

/// Commands with work that makes no event: power changes.
const SILENT: [&str; 3] = ["vm stop", "vm start", "vm deallocate"];

/// Calls `each` with the words of every command.
fn walk(path: &[&str], command: &Command, each: &mut impl FnMut(String, &Command)) {
    each(path.join(" "), command);
    for below in command.get_subcommands() {
        walk(&[path, &[below.get_name()]].concat(), below, each);
    }
}

fn commands_with(option: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(&[], &Cli::command(), &mut |words, command| {
        if command.get_arguments().any(|argument| argument.get_long() == Some(option)) {
            found.insert(words);
        }
    });
    found
}

#[test]
fn every_command_that_announces_events_can_require_notice() {
    // Work can be waited for, announced or not.
    let mut with_work = commands_with("wait");
    // `health --wait` waits for the server.
    with_work.remove("health");
    let silent = SILENT.map(str::to_owned).into();
    assert_eq!(commands_with("require-notice"), &with_work - &silent);
    assert!(with_work.is_superset(&silent), "{with_work:?}");
    assert!(with_work.len() >= 17, "{with_work:?}");
}
