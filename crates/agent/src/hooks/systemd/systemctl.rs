//! Calls of `systemctl`, and its output.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;

use crate::hooks::process::{CapturedOutput, Program, run};
use crate::hooks::time_limit::TimeLimit;

/// The path of `systemctl`.
pub(super) struct Systemctl<'a>(pub(super) &'a Path);

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState {
    pub(super) is_there: bool,
    pub(super) is_active: bool,
    pub(super) is_masked: bool,
}

impl Systemctl<'_> {
    /// The states of units, in the given order.
    pub(super) async fn show(&self, units: &[String]) -> Result<Vec<(String, UnitState)>, String> {
        let text = self.run("show", &["--property=LoadState,ActiveState,UnitFileState"], units).await?;
        let states = parse(&text);
        if states.len() != units.len() {
            let (requested, returned) = (units.len(), states.len());
            return Err(format!("systemctl returned {returned} units instead of {requested}"));
        }
        Ok(units.iter().cloned().zip(states).collect())
    }

    /// Runs a verb on units and waits for the result.
    pub(super) async fn run_verb(&self, verb: &str, units: &[String]) -> Result<(), String> {
        if units.is_empty() {
            return Ok(());
        }
        self.run(verb, &[], units).await.map(drop)
    }

    pub(super) async fn main_pid(&self, unit: &str) -> Result<Option<i32>, String> {
        let text = self.run("show", &["--property=MainPID"], &[unit.to_owned()]).await?;
        let pid = text.lines().find_map(|line| line.strip_prefix("MainPID="));
        let pid = pid.and_then(|pid| pid.trim().parse::<i32>().ok());
        match pid {
            Some(0) => Ok(None),
            Some(pid) => Ok(Some(pid)),
            None => Err(format!("systemctl returned no main process of {unit}")),
        }
    }

    /// Runs `systemctl`. Dropping the future kills it; the caller applies the time limit.
    async fn run(&self, verb: &str, options: &[&str], units: &[String]) -> Result<String, String> {
        let fixed = ["--no-ask-password", "--no-pager", verb]
            .into_iter()
            .chain(options.iter().copied())
            .chain(["--"]);
        let arguments: Vec<String> = fixed.map(str::to_owned).chain(units.iter().cloned()).collect();
        let program = Program {
            path: self.0,
            arguments: &arguments,
            variables: Vec::new(),
            input: b"",
            register: None,
        };
        let mut captured = CapturedOutput::default();
        let (_sender, stop) = watch::channel(false);
        let mut time_limit = TimeLimit::new(Duration::MAX, stop);
        run(&program, &mut time_limit, &mut captured).await.map_err(|error| {
            let (units, message) = (units.join(" "), captured.errors());
            let message = if message.is_empty() { message } else { format!(": {message}") };
            format!("systemctl {verb} {units}: {error}{message}")
        })?;
        Ok(captured.output())
    }
}

/// Parses paragraphs of `Name=value`, one per unit.
fn parse(text: &str) -> Vec<UnitState> {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    paragraphs.map(state).collect()
}

fn state(paragraph: &str) -> UnitState {
    let value = |name: &str| {
        let mut lines = paragraph.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim()).unwrap_or_default()
    };
    let is_masked = value("LoadState") == "masked" || value("UnitFileState").starts_with("masked");
    UnitState {
        is_there: !matches!(value("LoadState"), "not-found" | ""),
        is_active: matches!(value("ActiveState"), "active" | "activating" | "reloading" | "refreshing"),
        is_masked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemctl_tells_is_read() {
        // The output of systemctl 252 and 257.
        let text = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\n\
                    LoadState=masked\nActiveState=inactive\nUnitFileState=masked\n\n\
                    LoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n\
                    LoadState=loaded\nActiveState=failed\nUnitFileState=masked-runtime\n";
        let state = |is_there, is_active, is_masked| UnitState { is_there, is_active, is_masked };
        let expected = [
            state(true, true, false),
            state(true, false, true),
            state(false, false, false),
            state(true, false, true),
        ];
        assert_eq!(parse(text), expected);
        assert_eq!(parse(""), []);
        assert_eq!(parse("what\n\n=\n"), [UnitState::default(), UnitState::default()]);
    }
}
