//! The maintenance mode of a host: no machine is placed on the host, its machines leave, and it may have a step.
//!
//! ```text
//!   enter ──▶ machines leave, as announced ──▶ step on the empty host, if one is wanted ──▶ empty until exit
//!                     └── one of them could not leave: no step; the operator enters again or exits
//!   exit  ──▶ the host takes machines again; those that left return, if the operator wants it
//! ```

use forewarn_types::{MachineId, RolloutId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::host_step::{HostOperation, HostTask, HostWork, Leaving, WorkText};

/// The details of a host in maintenance mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceMode {
    /// Time of the first command by which it entered.
    pub since: Timestamp,
    /// The work that empties the host, with the step on the empty host.
    pub task: HostTask,
    /// The rollout that empties the host; `None` if there was nothing to do. It may have ended.
    pub rollout: Option<RolloutId>,
    /// The result of the last step on the host in this mode.
    pub step: ModeStep,
    /// The machines that left because of the mode, ascending, each with the way in which it left.
    pub left: Vec<(MachineId, Leaving)>,
}

/// The result of the step on a host in maintenance mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeStep {
    /// There was none so far.
    #[default]
    Untaken,
    /// The last one succeeded.
    Done,
    /// The last one failed.
    Failed,
}

/// The step on the empty host that a command to enter maintenance mode asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum StepWish {
    /// The step that an earlier command asked for and that has not been done; else none.
    Unchanged,
    /// No step.
    Declined,
    /// A step.
    Asked {
        /// The operation on the host.
        operation: HostOperation,
        /// The words of the operator.
        #[serde(deserialize_with = "Option::deserialize")]
        text: Option<WorkText>,
    },
}

/// Treatment, at the exit from maintenance mode, of machines that left because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestReturn {
    /// They stay where they are, or switched off.
    Stay,
    /// They return in the way in which they left.
    Return,
}

/// The progress of a host in maintenance mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeProgress {
    /// Its machines are to leave, or the step is to be done: announced, held or in progress.
    Entering,
    /// Its machines have left, and no step is left to do.
    Entered,
    /// The work has ended, but a machine is still there, or the step has not been done.
    Incomplete,
}

impl MaintenanceMode {
    /// The way in which the remaining machines leave.
    #[must_use]
    pub fn leaving(&self) -> Leaving {
        match self.task.kind {
            HostWork::Maintenance { leaving, .. } => leaving,
            HostWork::Update | HostWork::NetworkUpdate | HostWork::Migration | HostWork::Restart => {
                Leaving::Live
            }
        }
    }

    pub(crate) fn add_departure(&mut self, machine: MachineId, way: Leaving) {
        match self.left.binary_search_by_key(&machine, |(machine, _)| *machine) {
            Ok(index) => self.left[index].1 = way,
            Err(index) => self.left.insert(index, (machine, way)),
        }
    }
}
