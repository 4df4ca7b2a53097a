//! Units of systemd that are stopped, or started, for as long as an event lasts.
//!
//! Done with the program `systemctl`. How each unit was before it was touched first is remembered, so that undoing brings back
//! just that: a unit that was not running stays as it is, one that was masked by somebody else stays masked, and a second event
//! while the first is not over does not make the agent believe that nothing ran. A mask is a lasting one: nothing starts the unit
//! until it is undone, a reboot neither.

mod systemctl;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::systemctl::Systemctl;
use super::Setting;

/// `systemd = { stop = ["nginx"], start = ["standby"], mask = true }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemdWork {
    /// Units that are stopped; undone: those that were running are started again.
    #[serde(default)]
    pub(crate) stop: Vec<String>,
    /// Units that are started; undone: those that were not running are stopped again.
    #[serde(default)]
    pub(crate) start: Vec<String>,
    /// Whether units that are stopped are masked as well, so that nothing starts them; undone: those that were not masked are
    /// unmasked.
    #[serde(default)]
    pub(crate) mask: bool,
    /// The program `systemctl`.
    #[serde(default = "usual_systemctl")]
    pub(crate) systemctl: PathBuf,
}

pub(super) fn usual_systemctl() -> PathBuf {
    PathBuf::from("/usr/bin/systemctl")
}

/// Units in one setting.
const UNITS_MAX: usize = 100;

/// How a unit was before it was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    /// It was running, or about to.
    active: bool,
    /// It was masked.
    masked: bool,
}

impl SystemdWork {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.stop.is_empty() && self.start.is_empty() {
            return Err(
                "`systemd` names no unit\n  hint: systemd = { stop = [\"nginx.service\"] }".to_owned()
            );
        }
        if self.stop.len() + self.start.len() > UNITS_MAX {
            return Err(format!("`systemd` names more than {UNITS_MAX} units"));
        }
        for unit in self.stop.iter().chain(&self.start) {
            check_unit(unit)?;
        }
        if let Some(both) = self.stop.iter().find(|unit| self.start.contains(unit)) {
            return Err(format!(
                "{both} is to be stopped and to be started\n  hint: two hooks, one after the other"
            ));
        }
        if self.mask && self.stop.is_empty() {
            return Err("`mask` is about units that are stopped, and there are none".to_owned());
        }
        if !self.systemctl.is_absolute() {
            return Err(format!("`systemctl` is not a whole path: {}", self.systemctl.display()));
        }
        Ok(())
    }

    pub(super) async fn perform(
        &self,
        setting: &Setting<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let systemctl = Systemctl(&self.systemctl);
        let (stop, start) = (full_names(&self.stop), full_names(&self.start));
        let all: Vec<String> = stop.iter().chain(&start).cloned().collect();
        let mut before = BTreeMap::new();
        for (unit, state) in systemctl.show(&all).await? {
            if !state.is_there {
                return Err(format!("there is no unit {unit}\n  hint: systemctl list-unit-files {unit}"));
            }
            before.insert(unit, Before { active: state.is_active, masked: state.is_masked });
        }
        setting.remember(json!({ "units": before }), memory).await?;
        if self.mask {
            systemctl.tell("mask", &stop).await?;
        }
        systemctl.tell("stop", &stop).await?;
        systemctl.tell("start", &start).await
    }

    pub(super) async fn undo(&self, setting: &Setting<'_>) -> Result<(), String> {
        let systemctl = Systemctl(&self.systemctl);
        let Some(before) = remembered(setting.earlier.as_ref()) else { return Ok(()) };
        let which = |units: &[String], fits: fn(&Before) -> bool| -> Vec<String> {
            full_names(units).into_iter().filter(|unit| before.get(unit).is_some_and(fits)).collect()
        };
        if self.mask {
            systemctl.tell("unmask", &which(&self.stop, |before| !before.masked)).await?;
        }
        systemctl.tell("stop", &which(&self.start, |before| !before.active)).await?;
        systemctl.tell("start", &which(&self.stop, |before| before.active)).await
    }
}

/// How units were; nothing, if it was never found out: then nothing was done either.
fn remembered(memory: Option<&Value>) -> Option<BTreeMap<String, Before>> {
    serde_json::from_value(memory?.get("units")?.clone()).ok()
}

/// The names of units as systemd has them: those without a kind are services.
fn full_names(units: &[String]) -> Vec<String> {
    units.iter().map(|unit| full_name(unit)).collect()
}

pub(super) fn full_name(unit: &str) -> String {
    let is_full = unit.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind));
    if is_full { unit.to_owned() } else { format!("{unit}.service") }
}

const KINDS: [&str; 8] = ["service", "socket", "target", "timer", "path", "mount", "automount", "slice"];

/// Characters of the name of a unit.
const UNIT_CHARS_MAX: usize = 255;

/// Whether it is the name of one unit: no option and no pattern.
pub(super) fn check_unit(unit: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '\\' | '@');
    let is_name =
        !unit.is_empty() && !unit.starts_with('-') && unit.len() <= UNIT_CHARS_MAX && unit.chars().all(fits);
    if is_name {
        Ok(())
    } else {
        Err(format!("not the name of a unit: {unit:?}\n  hint: write nginx.service, without patterns"))
    }
}

/// The main process of a unit; none, if it does not run.
pub(super) async fn main_pid(systemctl: &std::path::Path, unit: &str) -> Result<Option<i32>, String> {
    Systemctl(systemctl).main_pid(&full_name(unit)).await
}
