//! The program `systemctl`: what it is asked and told, and what it answers.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;

use crate::hands::bounds::Bounds;
use crate::hands::process::{Heard, Program, run};

/// The program.
pub(super) struct Systemctl<'a>(pub(super) &'a Path);

/// How a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState {
    pub(super) is_there: bool,
    pub(super) is_active: bool,
    pub(super) is_masked: bool,
}

impl Systemctl<'_> {
    /// How units are, in the order in which they are named.
    pub(super) async fn show(&self, units: &[String]) -> Result<Vec<(String, UnitState)>, String> {
        let text = self.run("show", &["--property=LoadState,ActiveState,UnitFileState"], units).await?;
        let states = parse(&text);
        if states.len() != units.len() {
            let (asked, told) = (units.len(), states.len());
            return Err(format!("systemctl was asked for {asked} units and has told of {told}"));
        }
        Ok(units.iter().cloned().zip(states).collect())
    }

    /// Tells systemd to do something with units, and waits until it is done.
    pub(super) async fn tell(&self, verb: &str, units: &[String]) -> Result<(), String> {
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
            None => Err(format!("systemctl does not tell the main process of {unit}")),
        }
    }

    /// Whoever calls it sees to its end: dropped, it is ended.
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
        let mut heard = Heard::default();
        let (_nobody, stop) = watch::channel(false);
        let mut bounds = Bounds::new(Duration::MAX, stop);
        run(&program, &mut bounds, &mut heard).await.map_err(|problem| {
            let (units, said) = (units.join(" "), heard.errors());
            let said = if said.is_empty() { said } else { format!(": {said}") };
            format!("systemctl {verb} {units}: {problem}{said}")
        })?;
        Ok(heard.output())
    }
}

/// Paragraphs of `Name=value`, one for each unit.
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
        // As systemctl 252 and 257 print it.
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
