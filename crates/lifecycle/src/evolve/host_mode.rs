//! Application of changes to the maintenance mode of hosts.

use forewarn_types::{HostId, MachineId, MaintenanceId, Now, RolloutId};

use crate::action::Report;
use crate::cluster::Cluster;
use crate::host_mode::{MaintenanceMode, ModeStep};
use crate::host_step::{HostTask, HostWork, Leaving, Target};
use crate::maintenance::Cause;

impl Cluster {
    /// A host takes no machines from now on. Earlier departures are remembered.
    pub(super) fn mode_entered(
        &mut self,
        now: Now,
        id: HostId,
        (work, rollout): (&HostTask, Option<RolloutId>),
        away: &[(MachineId, Leaving)],
    ) {
        self.change_host(id, |host| {
            let (since, left) = (now.wall, Vec::new());
            let new = MaintenanceMode { since, task: work.clone(), rollout, step: ModeStep::Untaken, left };
            let mode = host.mode.get_or_insert_with(|| Box::new(new));
            (mode.task, mode.rollout) = (work.clone(), rollout);
            away.iter().for_each(|(machine, way)| mode.add_departure(*machine, *way));
            if work.step.is_some() {
                mode.step = ModeStep::Untaken;
            }
        });
    }

    pub(super) fn mode_exited(&mut self, id: HostId) {
        self.change_host(id, |host| host.mode = None);
    }

    /// Records that an action took a machine from a host in maintenance mode.
    pub(super) fn record_departure(
        &mut self,
        id: MaintenanceId,
        target: Target,
        from: Option<HostId>,
        report: Report,
    ) {
        let Some(HostWork::Maintenance { leaving, .. }) = self.host_work(id) else { return };
        let mode = from.and_then(|host| self.hosts.get_mut(&host)).and_then(|host| host.mode.as_deref_mut());
        if let (Report::Done, Target::Machine(machine), Some(mode)) = (report, target, mode) {
            mode.add_departure(machine, leaving);
        }
    }

    /// Records the result of the step on a host in maintenance mode.
    pub(super) fn record_step(&mut self, id: MaintenanceId, host: HostId, report: Report) {
        let Some(HostWork::Maintenance { .. }) = self.host_work(id) else { return };
        if let Some(mode) = self.hosts.get_mut(&host).and_then(|host| host.mode.as_deref_mut()) {
            mode.step = match report {
                Report::Done => ModeStep::Done,
                Report::Failed => ModeStep::Failed,
            };
        }
    }

    fn host_work(&self, id: MaintenanceId) -> Option<HostWork> {
        Some(self.maintenances.get(&id)?.plan.cause.host_task()?.kind)
    }

    /// Lists a return of machines by its host, until it ends.
    pub(crate) fn list_return(&mut self, id: MaintenanceId, cause: &Cause) {
        if let Cause::HostReturn { host, .. } = cause {
            self.returns.insert((*host, id));
        }
    }

    pub(super) fn unlist_return(&mut self, id: MaintenanceId, cause: &Cause) {
        if let Cause::HostReturn { host, .. } = cause {
            self.returns.remove(&(*host, id));
        }
    }
}
