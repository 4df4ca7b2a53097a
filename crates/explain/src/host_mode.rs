//! Maintenance mode of hosts, in words.

use forewarn_control::view::host_mode::mode_text;
use forewarn_lifecycle::{Cause, HostId, HostWork};

use crate::ExplanationContext;

impl ExplanationContext<'_> {
    /// The progress of the hosts that work empties for maintenance mode. It may reveal other tenants.
    pub(crate) fn mode_progress(&self, cause: &Cause) -> Vec<String> {
        let is_mode = cause.host_task().is_some_and(|task| matches!(task.kind, HostWork::Maintenance { .. }));
        let hosts = cause.hosts().iter().filter(|_| is_mode);
        hosts.filter_map(|host| self.awaited_mode(*host)).collect()
    }

    /// The progress of a host in maintenance mode.
    pub(crate) fn awaited_mode(&self, id: HostId) -> Option<String> {
        let name = &self.cluster.host(id)?.name;
        let text = mode_text(self.cluster, id)?;
        Some(if self.viewer.is_limited {
            format!("host {name} is entering maintenance mode")
        } else {
            format!("host {name} is entering maintenance mode: {text}")
        })
    }
}
