//! The fence of a failed host that work waits for, in words.

use forewarn_lifecycle::{Fence, HostId, Maintenance, Target};

use crate::ExplanationContext;
use crate::obstacles::RETRIED;

impl ExplanationContext<'_> {
    /// The state of the fences that work waits for before it may start machines elsewhere.
    pub(crate) fn awaited_fences(&self, work: &Maintenance) -> Vec<String> {
        let mut hosts: Vec<_> =
            work.plan.machines().filter_map(|machine| self.cluster.unfenced_host_of(machine)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.into_iter().filter_map(|host| self.awaited_fence(host)).collect()
    }

    /// Moves that have started, and are not requested again before their hosts are fenced.
    pub(crate) fn barred_moves(&self, work: &Maintenance) -> Vec<String> {
        let barred = work.actions().filter_map(|action| self.cluster.barred_by(action));
        let mut hosts: Vec<_> = barred.collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.into_iter().filter_map(|host| self.awaited_fence(host)).collect()
    }

    fn awaited_fence(&self, id: HostId) -> Option<String> {
        let host = self.cluster.host(id)?;
        let name = &host.name;
        let order = match host.fence {
            Fence::Awaited { order } => order,
            Fence::Confirmed => return Some(format!("host {name} is fenced: waits for its recovery")),
            Fence::Unneeded => return None,
        };
        let Some(order) = order else {
            return Some(format!(
                "the driver could not fence host {name}: `forewarn host retry {name}` orders it again, \
                 `forewarn host fail {name} --fenced` confirms that its machines can no longer write"
            ));
        };
        let error = self.driver_errors.get(&(order, Target::Host(id))).filter(|_| !self.viewer.is_limited);
        let error = error.map(|error| format!(": {RETRIED}: {error}")).unwrap_or_default();
        Some(format!("waits for the driver to fence host {name}{error}"))
    }
}
