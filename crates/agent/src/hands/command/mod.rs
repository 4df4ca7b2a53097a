//! A program of the administrator's.
//!
//! Its command line is the one in the settings, word for word: nothing from an event is ever in it. What the program has to know
//! is in its environment and, as JSON, on its standard input. Status 0 says that it is done.

mod output;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Deserialize;

use self::output::Output;
use super::Setting;
use super::bounds::Bounds;
use super::event::{event_json, facts};
use super::process::{Program, run};

/// `command = ["/usr/local/bin/drain", "web"]`, and `undo = ["/usr/local/bin/drain", "--undo", "web"]` beside it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandWork {
    /// The program, by its whole path, and its arguments. It is started directly, never through a shell.
    pub(crate) command: Vec<String>,
    /// The program that undoes it, likewise. Without one there is nothing to undo.
    #[serde(default)]
    pub(crate) undo: Option<Vec<String>>,
}

impl CommandWork {
    pub(super) fn check(&self) -> Result<(), String> {
        check_command("command", &self.command)?;
        self.undo.as_ref().map_or(Ok(()), |undo| check_command("undo", undo))
    }

    pub(super) async fn perform(&self, setting: &Setting<'_>, bounds: Bounds) -> Result<(), String> {
        start(&self.command, setting, bounds).await
    }

    pub(super) async fn undo(&self, setting: &Setting<'_>, bounds: Bounds) -> Result<(), String> {
        match &self.undo {
            Some(undo) => start(undo, setting, bounds).await,
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
            "`{key}` begins with {program:?}, which is not a whole path\n  hint: find it with `command -v {program}`; a line \
             for the shell is written [\"/bin/sh\", \"-c\", \"…\"]"
        ));
    }
    if command.iter().any(|word| word.contains('\0')) {
        return Err(format!("`{key}` has a NUL character in it"));
    }
    Ok(())
}

async fn start(command: &[String], setting: &Setting<'_>, mut bounds: Bounds) -> Result<(), String> {
    let Some((path, arguments)) = command.split_first() else { return Err("there is no program".to_owned()) };
    let job = setting.job;
    let mut input = event_json(&job.run.seen).to_string();
    input.push('\n');
    let program = Program {
        path: Path::new(path),
        arguments,
        variables: facts(job).into_iter().map(|fact| (fact.variable, fact.value)).collect(),
        input: input.as_bytes(),
        register: Some(&setting.hands.register),
    };
    let mut output = Output::new(&job.run.task);
    let result = run(&program, &mut bounds, &mut output).await;
    output.finish();
    result
}
