//! The step on a host itself, between the moment at which its machines step aside and the one at which they return.
//!
//! ```text
//!   Started ──▶ machines of the host step aside ──▶ step on the host ──▶ machines of the host return ──▶ events end
//!               paused, stopped or moved                │                resumed, started, or nothing
//!                      └── one of them failed ──────────┴── failed: they return, too
//! ```
//!
//! Each host of a maintenance goes through these phases by itself. A host without machines has its step at once.

use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{HostId, MachineId, OutOfRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::paged::{PagedMap, PagedSet};

/// The object of an action in one phase of its maintenance. With the maintenance, it is the key of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// A machine: the only action on it, or the one by which it steps aside.
    Machine(MachineId),
    /// A machine that returns after the step on its host.
    Returning(MachineId),
    /// A host.
    Host(HostId),
}

/// The work on each host of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTask {
    /// The kind of work, which determines the effect on machines.
    pub kind: HostWork,
    /// Announced length of the interruption in seconds; `None` for the usual one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub seconds: Option<NonZeroU16>,
    /// The step on the host itself; `None` if only its machines are worked on.
    #[serde(deserialize_with = "Option::deserialize")]
    pub step: Option<Box<HostStep>>,
}

/// The work on a host, which affects its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostWork {
    /// An update that keeps memory: machines are paused.
    Update,
    /// An update of the network: machines may notice it.
    NetworkUpdate,
    /// Machines are moved live to other hosts.
    Migration,
    /// The host is restarted, and its machines with it.
    Restart,
    /// The host enters maintenance mode: its machines leave.
    Maintenance {
        /// The way in which its machines leave.
        leaving: Leaving,
        /// The step on the empty host, if there is one.
        operation: HostOperation,
    },
}

/// The way in which machines leave a host that enters maintenance mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leaving {
    /// They are moved live.
    Live,
    /// They are redeployed: stopped, and started on another host with a new ephemeral disk.
    Redeploy,
    /// They are stopped and stay on the host, switched off.
    Stop,
}

/// The way in which a machine returns to a host that has left maintenance mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnWay {
    /// It is moved live.
    Live,
    /// It is redeployed.
    Redeploy,
}

/// A step on a host itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStep {
    /// What is to be done there, in the words of the operator.
    #[serde(deserialize_with = "Option::deserialize")]
    pub text: Option<WorkText>,
}

/// The operator's words about work on a host: one line, 1 to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkText(Box<str>);

/// An operation on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostOperation {
    /// Updated; it keeps running, or restarts if the update needs it.
    Update,
    /// Restarted.
    Reboot,
    /// Separated from the disks of its machines, after a failure.
    Fence,
}

/// The way in which a machine steps aside for the step on its host, and stays until it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aside {
    /// Paused: memory stays.
    Paused,
    /// Stopped, to be started again. Its power state still counts as running.
    Stopped,
}

/// The progress of a started maintenance on its hosts, and its suspended actions. Empty if it has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The hosts whose machines have not begun to return.
    pub hosts: PagedMap<HostId, HostPhase>,
    /// The machines that are stepping aside, each with the host that it leaves.
    pub leaving: PagedMap<MachineId, HostId>,
    /// The machines that have stepped aside, by their host.
    pub aside: PagedSet<(HostId, MachineId)>,
    /// Those of them that were off at the start: nothing was done to them, and they do not return.
    pub idle: PagedSet<MachineId>,
    /// Actions of unknown result that are not repeated before an operator wants it, with or without steps.
    pub suspended: PagedSet<Target>,
}

/// The phase of a host in a started maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPhase {
    /// Its machines step aside.
    Aside {
        /// The number of machines that have not done so.
        left: u32,
        /// Readiness for the step.
        ready: Readiness,
    },
    /// The step is in progress.
    Step {
        /// Time of its request.
        since: Timestamp,
    },
}

/// The readiness of a host for its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Every machine so far has stepped aside.
    Ready,
    /// A machine could not step aside: there will be no step.
    Obstructed,
}

impl Target {
    /// The first target in the order of targets, for ranges.
    pub const FIRST: Self = Self::Machine(MachineId(0));
    /// The last target in the order of targets.
    pub const LAST: Self = Self::Host(HostId(u32::MAX));

    /// The machine; `None` for a host.
    #[must_use]
    pub fn machine(self) -> Option<MachineId> {
        match self {
            Self::Machine(machine) | Self::Returning(machine) => Some(machine),
            Self::Host(_) => None,
        }
    }

    /// The target as a number. That of a machine is its own number.
    #[must_use]
    pub fn to_number(self) -> u64 {
        match self {
            Self::Machine(MachineId(number)) => u64::from(number),
            Self::Host(HostId(number)) => 1 << 32 | u64::from(number),
            Self::Returning(MachineId(number)) => 2 << 32 | u64::from(number),
        }
    }

    /// The target with that number; `None` if there is none.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        let id = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        match number >> 32 {
            0 => Some(Self::Machine(MachineId(id))),
            1 => Some(Self::Host(HostId(id))),
            2 => Some(Self::Returning(MachineId(id))),
            _ => None,
        }
    }
}

impl From<MachineId> for Target {
    fn from(machine: MachineId) -> Self {
        Self::Machine(machine)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(machine) => machine.fmt(out),
            Self::Returning(machine) => write!(out, "return of {machine}"),
            Self::Host(host) => write!(out, "host {host}"),
        }
    }
}

impl HostTask {
    /// The same work with a step on each host.
    #[must_use]
    pub fn with_step(self, text: Option<WorkText>) -> Self {
        Self { step: Some(Box::new(HostStep { text })), ..self }
    }

    /// The operation on the host itself; `None` if only its machines are worked on.
    #[must_use]
    pub fn operation(&self) -> Option<HostOperation> {
        self.step.as_ref().map(|_| match self.kind {
            HostWork::Update | HostWork::NetworkUpdate | HostWork::Migration => HostOperation::Update,
            HostWork::Restart => HostOperation::Reboot,
            HostWork::Maintenance { operation, .. } => operation,
        })
    }

    /// The way in which machines wait for the end of the step; `None` if there is none, or if they have left.
    #[must_use]
    pub fn aside(&self) -> Option<Aside> {
        self.step.as_ref().and(match self.kind {
            HostWork::Update | HostWork::NetworkUpdate => Some(Aside::Paused),
            HostWork::Restart => Some(Aside::Stopped),
            HostWork::Migration | HostWork::Maintenance { .. } => None,
        })
    }

    /// The announced length of the interruption; -1 if it is unknown.
    #[must_use]
    pub fn duration_seconds(&self) -> i32 {
        let usual = match self.kind {
            HostWork::Update => 9,
            HostWork::NetworkUpdate => 0,
            HostWork::Migration => 5,
            HostWork::Restart => -1,
            HostWork::Maintenance { leaving: Leaving::Live, .. } => 5,
            HostWork::Maintenance { leaving: Leaving::Redeploy | Leaving::Stop, .. } => -1,
        };
        self.seconds.map_or(usual, |seconds| i32::from(seconds.get()))
    }

    /// The usual duration of an announced step.
    pub(crate) fn usual_duration(&self) -> Duration {
        const RESTART: u64 = 30;
        Duration::from_secs(u64::try_from(self.duration_seconds()).unwrap_or(RESTART))
    }
}

impl HostWork {
    /// Returns true if machines are moved to other hosts.
    pub(crate) fn moves_machines(self) -> bool {
        match self {
            Self::Migration | Self::Maintenance { leaving: Leaving::Live | Leaving::Redeploy, .. } => true,
            Self::Update
            | Self::NetworkUpdate
            | Self::Restart
            | Self::Maintenance { leaving: Leaving::Stop, .. } => false,
        }
    }
}

/// Work without a step, of the usual length.
impl From<HostWork> for HostTask {
    fn from(kind: HostWork) -> Self {
        Self { kind, seconds: None, step: None }
    }
}

impl WorkText {
    /// The longest text, in bytes.
    pub const BYTES_MAX: usize = 256;

    /// The text, if it is one line of a permitted length.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_good = (1..=Self::BYTES_MAX).contains(&text.len()) && !text.chars().any(is_hidden);
        is_good.then(|| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control characters, line separators, and marks that change the direction of text.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl TryFrom<String> for WorkText {
    type Error = OutOfRange;

    fn try_from(text: String) -> Result<Self, OutOfRange> {
        Self::new(&text).ok_or(OutOfRange("the text about the work is one line of 1 to 256 bytes"))
    }
}

impl From<WorkText> for String {
    fn from(WorkText(text): WorkText) -> Self {
        text.into()
    }
}

impl fmt::Display for WorkText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_numbers_and_machines_keep_theirs() {
        for target in
            [Target::Machine(MachineId(7)), Target::Host(HostId(7)), Target::Returning(MachineId(u32::MAX))]
        {
            assert_eq!(Target::from_number(target.to_number()), Some(target));
        }
        assert_eq!(Target::Machine(MachineId(7)).to_number(), 7);
        assert_eq!(Target::from_number(3 << 32), None);
    }

    #[test]
    fn a_target_is_shown_with_its_kind() {
        let machine = MachineId(7);
        assert_eq!(Target::Machine(machine).to_string(), machine.to_string());
        assert_eq!(Target::Returning(machine).to_string(), format!("return of {machine}"));
        assert_eq!(Target::Host(HostId(7)).to_string(), format!("host {}", HostId(7)));
    }

    #[test]
    fn a_text_is_one_line_of_limited_length() {
        let long = "x".repeat(WorkText::BYTES_MAX);
        for good in ["kernel 6.12.9", "größer", &long] {
            assert_eq!(WorkText::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\nb", "a\u{202e}b", &format!("{long}x")] {
            assert_eq!(WorkText::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_task_takes_little_memory() {
        assert!(size_of::<HostTask>() <= 16, "{}", size_of::<HostTask>());
    }
}
