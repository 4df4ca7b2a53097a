//! The progress of hosts in maintenance mode, and the machines that may return to them.

use forewarn_types::{HostId, MachineId, MaintenanceId};

use crate::cluster::Cluster;
use crate::fleet::{Health, Host, HostAttention, Machine, Power};
use crate::host_mode::{ModeProgress, ModeStep};
use crate::host_step::{HostTask, HostWork, Leaving};
use crate::maintenance::{Cause, Maintenance};
use crate::placement::Moves;

impl HostTask {
    /// Returns true if a machine in that power state is out of the way of the step already.
    pub(crate) fn needs_no_action(&self, power: Power) -> bool {
        let stops = matches!(self.kind, HostWork::Maintenance { leaving: Leaving::Stop, .. });
        self.waits_aside(power) || (stops && power != Power::Running)
    }

    /// Returns true if a machine in that power state waits for the end of the step where it is.
    pub(crate) fn waits_aside(&self, power: Power) -> bool {
        self.aside().is_some() && power != Power::Running
    }
}

impl Cluster {
    /// The machines that have not left a host in maintenance mode.
    #[must_use]
    pub fn remaining_on(&self, id: HostId) -> Vec<MachineId> {
        let Some(mode) = self.host(id).and_then(|host| host.mode.as_deref()) else { return Vec::new() };
        self.worked_on(id, &mode.task)
    }

    /// The machines of a host that work on it affects: all of them, or those that have to leave it. Machines that are
    /// off have left a host whose machines are stopped.
    pub(crate) fn worked_on(&self, id: HostId, task: &HostTask) -> Vec<MachineId> {
        let mut machines = self.machines_on(id);
        if matches!(task.kind, HostWork::Maintenance { .. }) {
            let left = self.host(id).and_then(|host| host.mode.as_deref()).map_or(&[][..], |mode| &mode.left);
            machines.retain(|id| {
                let is_off = self.machine(*id).is_some_and(|machine| machine.power != Power::Running);
                let is_stopped = is_off && left.contains(&(*id, Leaving::Stop));
                !is_stopped && self.machine(*id).is_some_and(|machine| !task.needs_no_action(machine.power))
            });
        }
        machines
    }

    /// A machine that has not left a host in maintenance mode and that no other host can take.
    #[must_use]
    pub fn machine_without_host(&self, id: HostId) -> Option<MachineId> {
        let stuck = |id: &MachineId| {
            let machine = self.machine(*id);
            let elsewhere =
                |known: &Machine| self.find_host_for((*id, known), &[known.host], &Moves::default());
            machine.is_some_and(|known| elsewhere(known).is_none())
        };
        self.remaining_on(id).into_iter().find(stuck)
    }

    /// The progress of a host in maintenance mode; `None` for other hosts.
    #[must_use]
    pub fn mode_progress(&self, id: HostId) -> Option<ModeProgress> {
        let host = self.host(id)?;
        let mode = host.mode.as_deref()?;
        if self.mode_work(host).is_some() || mode.rollout.is_some_and(|id| self.rollout(id).is_some()) {
            return Some(ModeProgress::Entering);
        }
        let step_missing = mode.task.step.is_some() && mode.step != ModeStep::Done;
        let complete = !step_missing && self.remaining_on(id).is_empty();
        Some(if complete { ModeProgress::Entered } else { ModeProgress::Incomplete })
    }

    /// The announced or started work that empties a host in maintenance mode.
    #[must_use]
    pub fn mode_work(&self, host: &Host) -> Option<&Maintenance> {
        let work = self.maintenance(host.work?)?;
        let rollout = host.mode.as_deref()?.rollout?;
        (work.plan.cause.rollout() == Some(rollout)).then_some(work)
    }

    /// Returns true if a machine that left a host because of its maintenance mode can return to it.
    #[must_use]
    pub fn can_return_to(&self, id: HostId, machine: MachineId, way: Leaving) -> bool {
        let Some((host, known)) = self.host(id).zip(self.machine(machine)) else { return false };
        let returns = |work: &Maintenance| matches!(work.plan.cause, Cause::HostReturn { .. });
        if self.is_leaving(machine) || self.pending_of(machine).any(returns) {
            return false;
        }
        let usable = host.health == Health::Healthy && host.attention == HostAttention::Unneeded;
        match way {
            Leaving::Live | Leaving::Redeploy => {
                known.host != id
                    && known.power != Power::Deallocated
                    && usable
                    && self.fits(known, id, &Moves::default())
                    && self.room_of(id).has_room_for(self.size_of(machine))
            }
            Leaving::Stop => {
                known.host == id && known.power == Power::Stopped && host.health != Health::Failed
            }
        }
    }

    /// The announced or started returns of machines to a host.
    pub fn returns_to(&self, id: HostId) -> impl Iterator<Item = &Maintenance> {
        let all = (id, MaintenanceId(0))..=(id, MaintenanceId(u64::MAX));
        self.returns.range(all).filter_map(|(_, id)| self.maintenance(*id))
    }
}
