//! Hooks that run a program of the administrator.
//!
//! The command line is exactly the one in the settings and never contains data of an event. The program gets the event
//! in its environment and, as JSON, on standard input. Exit status 0 means success.

mod output;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Deserialize;

use self::output::OutputLog;
use super::HookCall;
use super::event::{event_json, event_variables};
use super::process::{Program, run};
use super::time_limit::TimeLimit;

/// `command = ["/usr/local/bin/drain", "web"]`, and `undo = ["/usr/local/bin/drain", "--undo", "web"]` beside it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandWork {
    /// The absolute path of the program, and its arguments. It is started directly, never through a shell.
    pub(crate) command: Vec<String>,
    /// The program that undoes the work. `None` if there is nothing to undo.
    #[serde(default)]
    pub(crate) undo: Option<Vec<String>>,
}

impl CommandWork {
    pub(super) fn errors(&self) -> Vec<String> {
        let undo = self.undo.as_ref().and_then(|undo| check_command("undo", undo).err());
        check_command("command", &self.command).err().into_iter().chain(undo).collect()
    }

    pub(super) async fn perform(&self, call: &HookCall<'_>, time_limit: TimeLimit) -> Result<(), String> {
        start(&self.command, call, time_limit).await
    }

    pub(super) async fn undo(&self, call: &HookCall<'_>, time_limit: TimeLimit) -> Result<(), String> {
        match &self.undo {
            Some(undo) => start(undo, call, time_limit).await,
            None => Ok(()),
        }
    }
}

fn check_command(key: &str, command: &[String]) -> Result<(), String> {
    let Some(program) = command.first() else {
        return Err(format!("`{key}` is empty\n  hint: {key} = [\"/usr/local/bin/drain\", \"web\"]"));
    };
    if !Path::new(program).is_absolute() {
        return Err(format!(
            "`{key}` begins with {program:?}, which is not an absolute path\n  hint: find it with `command -v {program}`; a shell \
             command is written [\"/bin/sh\", \"-c\", \"…\"]"
        ));
    }
    if command.iter().any(|word| word.contains('\0')) {
        return Err(format!("`{key}` contains a NUL character"));
    }
    Ok(())
}

async fn start(command: &[String], call: &HookCall<'_>, mut time_limit: TimeLimit) -> Result<(), String> {
    let Some((path, arguments)) = command.split_first() else {
        return Err("no program configured".to_owned());
    };
    let job = call.job;
    let mut input = event_json(&job.run.observed).to_string();
    input.push('\n');
    let program = Program {
        path: Path::new(path),
        arguments,
        variables: event_variables(job)
            .into_iter()
            .map(|variable| (variable.variable, variable.value))
            .collect(),
        input: input.as_bytes(),
        register: Some(&call.runtime.register),
    };
    let mut output = OutputLog::new(&job.run.task);
    let result = run(&program, &mut time_limit, &mut output).await;
    output.finish();
    result
}
