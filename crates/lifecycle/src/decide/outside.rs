//! Changes that an operator made to machines by other means: the rules record them and request no action.
//!
//! Actions in progress have to end first. Planned work is withdrawn if it no longer concerns any of its machines.

use forewarn_types::{HostId, MachineId};

use super::draft::Draft;
use super::ending::Outcome;
use crate::change::Change;
use crate::command::PlannedWork;
use crate::fleet::{Health, Host};
use crate::maintenance::Maintenance;
use crate::refusal::Refusal;

/// Machines that a refusal names.
const LISTED_MACHINES_MAX: usize = 5;

impl Draft<'_> {
    /// Stops managing a machine. Events that name only this machine are withdrawn.
    pub(super) fn forget(&mut self, id: MachineId) -> Result<(), Refusal> {
        self.check_idle(id)?;
        // The withdrawals come first, so that they can still name the machine.
        self.withdraw_unconcerned(id, Outcome::Gone)?;
        self.changes.push(Change::MachineForgotten(id));
        Ok(())
    }

    /// Records that a machine runs on another host. Events about the host that it has left are withdrawn.
    pub(super) fn record_move(
        &mut self,
        id: MachineId,
        to: HostId,
        planned: PlannedWork,
    ) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let host = self.cluster.known_host(to)?;
        if machine.host == to && !self.cluster.is_moving(id) {
            return Ok(());
        }
        self.check_idle(id)?;
        match planned {
            PlannedWork::Refuses => self.check_unplanned(id)?,
            PlannedWork::GivesWay => {}
        }
        if self.cluster.known_host(machine.host)?.zone != host.zone {
            return Err(Refusal::OtherZone { machine: machine.name.clone(), host: host.name.clone() });
        }
        if host.health == Health::Failed {
            return Err(Refusal::HostFailed(host.name.clone()));
        }
        self.cluster.check_room(host, machine.tenant, machine.update_domain)?;
        self.changes.push(Change::MachineMoved { machine: id, to });
        self.withdraw_unconcerned(id, Outcome::Moved(to))
    }

    /// Refuses while an action on the machine is in progress.
    fn check_idle(&self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let is_busy = |work: &Maintenance| work.action(id).is_some() || work.is_aside(id, machine.host);
        if self.cluster.pending_of(id).any(is_busy) {
            return Err(Refusal::UnderWay(machine.name.clone()));
        }
        Ok(())
    }

    /// Refuses while work that has not started names the machine.
    fn check_unplanned(&self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let Some(Maintenance { plan, .. }) = self.cluster.waiting_of(id).next() else { return Ok(()) };
        let announcement = plan.part(machine.tenant).and_then(|part| part.announcement.as_ref());
        Err(Refusal::Planned { machine: machine.name.clone(), event: announcement.map(|event| event.id) })
    }

    /// The machines of a host by their full names, the first few of them.
    pub(super) fn listed_on(&self, host: &Host) -> String {
        let full_name = |id: &MachineId| {
            let machine = self.cluster.machine(*id)?;
            let tenant = self.cluster.tenant(machine.tenant)?;
            Some(format!("{}/{}", tenant.name, machine.name))
        };
        let names: Vec<_> = host.machines().iter().take(LISTED_MACHINES_MAX).filter_map(full_name).collect();
        match host.machines().len().saturating_sub(LISTED_MACHINES_MAX) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }
}
