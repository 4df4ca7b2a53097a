//! `forewarn test` with real programs.

mod dev_events;
mod endings;
mod library;
mod listeners;
mod repeated;
mod reports;
mod stories;
mod verdicts;

use std::process::Command;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, clean_command, programs};

/// The service that tests run, in Python.
const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/test/service.py");

/// Short times, so that tests of failures end soon.
const SHORT: &str = "--patience 3s --startup 5s";

/// The command `forewarn test` with options, on the service with its own. None if there is no Python.
fn command(options: &str, service: &str) -> Option<Command> {
    let python = programs::find_or_skip("python3")?;
    let mut command = clean_command(crate::program());
    command.arg("test").args(options.split_whitespace()).arg("--").arg(python).arg(SERVICE);
    command.args(service.split_whitespace());
    Some(command)
}

fn run(options: &str, service: &str) -> Option<CommandResult> {
    Some(run_with_input(&mut command(options, service)?, ""))
}

/// The last line that a test prints.
fn conclusion(result: &CommandResult) -> &str {
    result.out.lines().last().unwrap_or_default()
}
