//! Operations of the owner of a machine, and the eviction of spot machines by the platform.

use forewarn_types::{EventSource, MachineId};

use super::draft::Draft;
use crate::fleet::{Machine, Power, Priority};
use crate::maintenance::{Cause, Maintenance, PowerChange, Withdrawal};
use crate::refusal::Refusal;

impl Draft<'_> {
    pub(super) fn restart(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        if machine.power != Power::Running {
            return Err(Refusal::NotRunning(machine.name.clone()));
        }
        self.check_nothing_pending(id, machine)?;
        self.check_user_operations(machine, 0)?;
        self.plan(Cause::UserRestart, &[id])
    }

    pub(super) fn redeploy(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        Refusal::check_allocated(&machine.name, machine.power)?;
        self.check_nothing_pending(id, machine)?;
        self.check_user_operations(machine, 0)?;
        if self.cluster.find_host_for((id, machine), &[], &self.moves).is_none() {
            return Err(self.no_host(id, &[]));
        }
        self.plan(Cause::UserRedeploy, &[id])
    }

    pub(super) fn reimage(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        Refusal::check_allocated(&machine.name, machine.power)?;
        self.check_nothing_pending(id, machine)?;
        self.plan(Cause::Reimage(machine.profile.os_image), &[id])
    }

    /// Deletes a machine, with a Terminate event if its profile has one. A second delete has no effect.
    pub(super) fn delete(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        if self.pending_is(id, |cause| matches!(cause, Cause::UserDelete(_))) {
            return Ok(());
        }
        let notice = machine.profile.terminate.filter(|_| machine.power != Power::Deallocated);
        let superseded = self.supersede(id);
        if notice.is_some() {
            self.check_user_operations(machine, superseded)?;
        }
        self.plan(Cause::UserDelete(notice), &[id])
    }

    /// Evicts a spot machine. A second eviction, or one of a machine that is being deleted, has no effect.
    pub(super) fn evict(&mut self, id: MachineId) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let Priority::Spot(policy) = machine.priority else {
            return Err(Refusal::NotSpot(machine.name.clone()));
        };
        Refusal::check_allocated(&machine.name, machine.power)?;
        if self.pending_is(id, Cause::ends_machine) {
            return Ok(());
        }
        self.supersede(id);
        self.plan(Cause::Eviction(policy), &[id])
    }

    /// Stops, starts or deallocates a machine: at once, and without an event.
    pub(super) fn change_power(&mut self, id: MachineId, change: PowerChange) -> Result<(), Refusal> {
        let machine = self.cluster.known_machine(id)?;
        let mut underway = self.cluster.pending_of(id).filter(|maintenance| maintenance.wait().is_none());
        let moving = change == PowerChange::Start && self.cluster.is_moving(id);
        if moving || underway.any(|maintenance| maintenance.plan.cause.changes_power()) {
            return Err(Refusal::UnderWay(machine.name.clone()));
        }
        match (change, machine.power) {
            (PowerChange::Stop, Power::Stopped | Power::Deallocated)
            | (PowerChange::Start, Power::Running)
            | (PowerChange::Deallocate, Power::Deallocated) => return Ok(()),
            (PowerChange::Start, Power::Stopped | Power::Deallocated) => {
                self.check_fenced(id)?;
                if !self.can_start_here(id, machine)
                    && self.cluster.find_host_for((id, machine), &[], &self.moves).is_none()
                {
                    return Err(self.no_host(id, &[]));
                }
            }
            (PowerChange::Stop | PowerChange::Deallocate, Power::Running)
            | (PowerChange::Deallocate, Power::Stopped) => {}
        }
        self.plan(Cause::Power(change), &[id])
    }

    /// Refuses a second pending user operation, and any operation on a machine that will be stopped or deleted.
    fn check_nothing_pending(&self, id: MachineId, machine: &Machine) -> Result<(), Refusal> {
        let in_the_way = |maintenance: &&Maintenance| {
            let cause = &maintenance.plan.cause;
            cause.is_user_operation() || cause.changes_power()
        };
        let Some(maintenance) = self.cluster.pending_of(id).find(in_the_way) else { return Ok(()) };
        let part = maintenance.plan.part(machine.tenant);
        Err(match part.and_then(|part| part.announcement.as_ref()) {
            Some(announcement) => Refusal::Pending { machine: machine.name.clone(), event: announcement.id },
            None => Refusal::UnderWay(machine.name.clone()),
        })
    }

    /// Checks the limit of user operations, if an operator has set one. Superseded operations do not count.
    fn check_user_operations(&self, machine: &Machine, superseded: usize) -> Result<(), Refusal> {
        let Some(max) = self.cluster.settings.user_operations_max else { return Ok(()) };
        let tenant = self.cluster.known_tenant(machine.tenant)?;
        let by_users = tenant.events().iter().filter(|event| event.announcement.source == EventSource::User);
        if by_users.count() < usize::from(max) + superseded {
            return Ok(());
        }
        Err(Refusal::TooManyUserOperations { tenant: tenant.name.clone(), max })
    }

    /// Withdraws pending user operations that a delete or an eviction replaces. Returns the number of withdrawn user
    /// events.
    fn supersede(&mut self, id: MachineId) -> usize {
        let mut by_users = 0;
        for maintenance in self.cluster.waiting_of(id) {
            if maintenance.plan.cause.is_user_operation() {
                let announced = maintenance.plan.parts.iter().filter_map(|part| part.announcement.as_ref());
                by_users += announced.filter(|announcement| announcement.source == EventSource::User).count();
                self.withdraw_all(maintenance, Withdrawal::Superseded);
            }
        }
        by_users
    }

    fn pending_is(&self, id: MachineId, wanted: impl Fn(&Cause) -> bool) -> bool {
        self.cluster.pending_of(id).any(|maintenance| wanted(&maintenance.plan.cause))
    }
}
