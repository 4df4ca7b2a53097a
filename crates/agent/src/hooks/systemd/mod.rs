//! Hooks that stop or start systemd units for the duration of an event.
//!
//! Uses the program `systemctl`. The state of each unit before the first change is recorded, and the undo restores
//! exactly that: an inactive unit stays inactive, and a unit that was masked before stays masked, even if a second
//! event begins before the first has ended. A mask is persistent: it also survives a reboot.

mod systemctl;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::systemctl::Systemctl;
use super::{HookCall, check_path};

/// `systemd = { stop = ["nginx"], start = ["standby"], mask = true }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemdWork {
    /// Units to stop. The undo starts those that were running.
    #[serde(default)]
    pub(crate) stop: Vec<String>,
    /// Units to start. The undo stops those that were not running.
    #[serde(default)]
    pub(crate) start: Vec<String>,
    /// True to also mask the stopped units, so that nothing starts them. The undo unmasks those that were not masked.
    #[serde(default)]
    pub(crate) mask: bool,
    /// The path of `systemctl`.
    #[serde(default = "usual_systemctl")]
    pub(crate) systemctl: PathBuf,
}

pub(super) fn usual_systemctl() -> PathBuf {
    PathBuf::from("/usr/bin/systemctl")
}

/// Limit of units in one hook.
const UNITS_MAX: usize = 100;

/// The state of a unit before the first change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnitBefore {
    /// Running, or about to run.
    active: bool,
    masked: bool,
}

impl SystemdWork {
    pub(super) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.stop.is_empty() && self.start.is_empty() {
            errors
                .push("`systemd` names no unit\n  hint: systemd = { stop = [\"nginx.service\"] }".to_owned());
        }
        if self.stop.len() + self.start.len() > UNITS_MAX {
            errors.push(format!("`systemd` names more than {UNITS_MAX} units"));
        }
        let units = self.stop.iter().chain(&self.start).take(UNITS_MAX);
        errors.extend(units.filter_map(|unit| check_unit(unit).err()));
        if let Some(both) = self.stop.iter().find(|unit| self.start.contains(unit)) {
            errors.push(format!("{both} is in both `stop` and `start`\n  hint: use two hooks"));
        }
        if self.mask && self.stop.is_empty() && !self.start.is_empty() {
            errors.push("`mask` needs units in `stop`".to_owned());
        }
        errors.extend(check_path("systemctl", &self.systemctl).err());
        errors
    }

    pub(super) async fn perform(
        &self,
        call: &HookCall<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let systemctl = Systemctl(&self.systemctl);
        let (stop, start) = (full_names(&self.stop), full_names(&self.start));
        let all: Vec<String> = stop.iter().chain(&start).cloned().collect();
        let mut before = BTreeMap::new();
        for (unit, state) in systemctl.show(&all).await? {
            if !state.is_there {
                return Err(format!("unit {unit} not found\n  hint: systemctl list-unit-files {unit}"));
            }
            before.insert(unit, UnitBefore { active: state.is_active, masked: state.is_masked });
        }
        call.store_undo_state(json!({ "units": before }), memory).await?;
        if self.mask {
            systemctl.run_verb("mask", &stop).await?;
        }
        systemctl.run_verb("stop", &stop).await?;
        systemctl.run_verb("start", &start).await
    }

    pub(super) async fn undo(&self, call: &HookCall<'_>) -> Result<(), String> {
        let systemctl = Systemctl(&self.systemctl);
        let Some(before) = recorded_states(call.earlier.as_ref()) else { return Ok(()) };
        let which = |units: &[String], fits: fn(&UnitBefore) -> bool| -> Vec<String> {
            full_names(units).into_iter().filter(|unit| before.get(unit).is_some_and(fits)).collect()
        };
        if self.mask {
            systemctl.run_verb("unmask", &which(&self.stop, |before| !before.masked)).await?;
        }
        systemctl.run_verb("stop", &which(&self.start, |before| !before.active)).await?;
        systemctl.run_verb("start", &which(&self.stop, |before| before.active)).await
    }
}

/// The recorded states; `None` if none was recorded, and so nothing was changed.
fn recorded_states(memory: Option<&Value>) -> Option<BTreeMap<String, UnitBefore>> {
    serde_json::from_value(memory?.get("units")?.clone()).ok()
}

/// Full unit names. Names without a suffix are services.
fn full_names(units: &[String]) -> Vec<String> {
    units.iter().map(|unit| full_name(unit)).collect()
}

pub(super) fn full_name(unit: &str) -> String {
    let is_full = unit.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind));
    if is_full { unit.to_owned() } else { format!("{unit}.service") }
}

const KINDS: [&str; 8] = ["service", "socket", "target", "timer", "path", "mount", "automount", "slice"];

/// Limit of the length of a unit name.
const UNIT_CHARS_MAX: usize = 255;

/// Checks the name of a single unit: no options and no patterns.
pub(super) fn check_unit(unit: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '\\' | '@');
    let is_name =
        !unit.is_empty() && !unit.starts_with('-') && unit.len() <= UNIT_CHARS_MAX && unit.chars().all(fits);
    if is_name {
        Ok(())
    } else {
        Err(format!("invalid unit name: {unit:?}\n  hint: write nginx.service, without patterns"))
    }
}

/// The main process of a unit; `None` if it is not running.
pub(super) async fn main_pid(systemctl: &std::path::Path, unit: &str) -> Result<Option<i32>, String> {
    Systemctl(systemctl).main_pid(&full_name(unit)).await
}
