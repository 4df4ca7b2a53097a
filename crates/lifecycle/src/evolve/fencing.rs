//! Application of changes to the fences of failed hosts.

use forewarn_types::{HostId, MachineId, MaintenanceId, Steady};

use crate::action::Action;
use crate::agenda::Due;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::fleet::Fence;
use crate::maintenance::{Cause, Hold, Maintenance, Wait};

impl Cluster {
    /// Once a host is fenced, or needs no fence any more, its machines may move: held moves are checked again, and moves
    /// in progress are requested again.
    pub(super) fn fence_changed(&mut self, id: HostId, fence: Fence, out: &mut Vec<Effect>) {
        let barred = self.barred_actions(id);
        self.change_host(id, |host| host.fence = fence);
        if fence.is_awaited() {
            return;
        }
        out.extend(
            barred.into_iter().filter(|action| self.barred_by(*action).is_none()).map(Effect::Perform),
        );
        let machines = self.hosts.get(&id).map_or(&[][..], |host| host.machines());
        let waiting = machines.iter().flat_map(|machine| self.waiting_of(*machine));
        let held = waiting.filter(|work| work.wait() == Some(Wait::Held(Hold::Fencing)));
        let held: Vec<_> = held.map(|work| work.plan.id).collect();
        held.into_iter().for_each(|id| self.recheck(id));
    }

    /// Unfinished actions that are not requested again because of the failure of that host.
    fn barred_actions(&self, id: HostId) -> Vec<Action> {
        let Some(host) = self.hosts.get(&id) else { return Vec::new() };
        let of_machines = host.machines().iter().flat_map(|machine| {
            let requested = self.pending_of(*machine).flat_map(Maintenance::requested);
            requested.filter(|action| action.target.machine() == Some(*machine))
        });
        let work = host.work.and_then(|work| self.maintenance(work));
        let on_host = work.into_iter().flat_map(Maintenance::requested);
        let on_host = on_host.filter(|action| action.target.machine().is_none());
        of_machines.chain(on_host).filter(|action| self.barred_by(*action) == Some(id)).collect()
    }

    /// A move that was in progress when the host of the machine failed has not taken the machine away: the next tick
    /// announces the failure of the host to it.
    pub(super) fn rescue_after_failed_move(&mut self, work: MaintenanceId, id: MachineId) {
        let cause = self.maintenances.get(&work).map(|work| &work.plan.cause);
        if matches!(cause, Some(Cause::FailedHost { .. })) || !self.is_on_fenced_host(id) {
            return;
        }
        let host = self.machines.get(&id).map(|machine| machine.host);
        let will_move = |work: &Maintenance| {
            let is_failure = host.is_some_and(
                |host| matches!(work.plan.cause, Cause::FailedHost { host: failed, .. } if failed == host),
            );
            is_failure && (work.wait().is_some() || work.action(id).is_some())
        };
        if !self.pending_of(id).any(will_move) {
            self.agenda.add(Steady::START, Due::Stranded(id));
        }
    }
}
