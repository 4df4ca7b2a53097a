//! Records of failed hosts that are not fenced, derived from commands, requested actions and their results alone: no
//! machine of such a host is ordered to start elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

#[derive(Default)]
pub struct FenceRecords {
    /// Failed hosts whose machines may still run there.
    unfenced: BTreeSet<HostId>,
    /// Failed hosts whose machines can no longer write.
    fenced: BTreeSet<HostId>,
    requested: BTreeMap<(MaintenanceId, Target), Impact>,
}

impl FenceRecords {
    /// A command was accepted; nothing has been applied.
    pub fn accepted(&mut self, command: &Command) {
        match command {
            Command::FailUnfencedHost(host) if !self.fenced.contains(host) => {
                self.unfenced.insert(*host);
            }
            Command::FailFencedHost(host) => self.confirm(*host),
            Command::RecoverHost(host) => {
                self.unfenced.remove(host);
                self.fenced.remove(host);
            }
            _ => {}
        }
    }

    fn confirm(&mut self, host: HostId) {
        self.unfenced.remove(&host);
        self.fenced.insert(host);
    }

    /// Called after a change was applied. Returns the promises that it breaks, and the kind of observation.
    pub fn changed(
        &mut self,
        cluster: &Cluster,
        change: &Change,
        effects: &[Effect],
    ) -> (BrokenPromises, &'static str) {
        let (mut broken, mut seen) = (Vec::new(), "");
        if let Change::Completed { maintenance, target, report: Report::Done } = change {
            seen = self.done(*maintenance, *target);
        }
        if matches!(change, Change::Waits { wait: Wait::Held(Hold::Fencing), .. }) {
            seen = "held for a fence";
        }
        for effect in effects {
            let Effect::Perform(action) = effect else { continue };
            self.requested.insert((action.maintenance, action.target), action.impact);
            let host = action.target.machine().and_then(|machine| Some(cluster.machine(machine)?.host));
            let is_unfenced = host.is_some_and(|host| self.unfenced.contains(&host));
            if is_unfenced && action.impact.destination().is_some() {
                broken.push((Promise::Fenced, format!("{action:?} although its host is not fenced")));
            }
        }
        (broken, seen)
    }

    /// A host has been fenced, or a machine has arrived on a host that was.
    fn done(&mut self, maintenance: MaintenanceId, target: Target) -> &'static str {
        let Some(impact) = self.requested.get(&(maintenance, target)) else { return "" };
        if let (Impact::OnHost(HostOperation::Fence), Target::Host(host)) = (impact, target) {
            self.confirm(host);
            return "fenced";
        }
        if let Some(to) = impact.destination().filter(|to| self.fenced.remove(to)) {
            self.unfenced.insert(to);
            return "arrived on a fenced host";
        }
        ""
    }

    /// Called when nothing is due: every action that may be requested, and every fence that is awaited.
    pub fn settled(&self, cluster: &Cluster) -> BrokenPromises {
        let mut broken = Vec::new();
        for action in cluster.unfinished().filter(|action| action.impact.destination().is_some()) {
            let host = action.target.machine().and_then(|machine| Some(cluster.machine(machine)?.host));
            if host.is_some_and(|host| self.unfenced.contains(&host)) {
                broken.push((Promise::Fenced, format!("{action:?} would be requested again")));
            }
        }
        for (id, host) in cluster.hosts() {
            let expected = self.unfenced.contains(&id);
            let order = host.fence.order().map(|order| cluster.maintenance(order).is_some());
            if host.fence.is_awaited() != expected || order == Some(false) {
                broken.push((Promise::Fenced, format!("the fence of {} is {:?}", host.name, host.fence)));
            }
        }
        broken
    }
}
