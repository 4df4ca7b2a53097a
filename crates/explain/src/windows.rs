//! Windows of tenants that hold work.

use forewarn_control::WindowEntry;
use forewarn_lifecycle::{Cause, Maintenance, TenantId, Window};
use forewarn_types::Moment;

use crate::ExplanationContext;

/// Maximum number of tenants that are named; the others are counted.
const TENANTS_NAMED_MAX: usize = 8;

impl ExplanationContext<'_> {
    /// The tenants of host work whose windows are closed now.
    pub(crate) fn closed_windows(&self, work: &Maintenance, own: TenantId) -> Vec<String> {
        if !matches!(work.plan.cause, Cause::HostWork { .. }) {
            return Vec::new();
        }
        let is_closed = |windows: &[Window]| !windows.iter().any(|window| window.is_open(self.now.wall));
        let parts = work.plan.parts.iter().map(|part| part.tenant);
        let windows = parts.map(|tenant| (tenant, self.cluster.windows_of_tenant(tenant)));
        let closed = windows.filter(|(_, windows)| !windows.is_empty() && is_closed(windows));
        let (seen, unseen): (Vec<_>, Vec<_>) =
            closed.partition(|(tenant, _)| *tenant == own || (self.viewer.may_see)(*tenant));
        let mut all: Vec<_> = seen
            .iter()
            .take(TENANTS_NAMED_MAX)
            .filter_map(|(tenant, windows)| self.closed_until(*tenant, windows))
            .collect();
        match unseen.len() + seen.len().saturating_sub(TENANTS_NAMED_MAX) {
            0 => {}
            1 => all.push("the windows of another tenant of the same work are closed".to_owned()),
            several => {
                all.push(format!("the windows of {several} other tenants of the same work are closed"));
            }
        }
        all
    }

    fn closed_until(&self, tenant: TenantId, windows: &[Window]) -> Option<String> {
        let name = &self.cluster.tenant(tenant)?.name;
        let opens = windows.iter().map(|window| window.next_open(self.now.wall)).min()?;
        let shown: Vec<_> = windows.iter().map(|window| WindowEntry::from(window).to_string()).collect();
        let (shown, opens) = (shown.join("; "), Moment(opens));
        Some(format!("the windows of tenant {name} are closed until {opens}: {shown}"))
    }
}
