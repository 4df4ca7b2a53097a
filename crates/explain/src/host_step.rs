//! Steps on hosts that an event waits for, in words.

use forewarn_lifecycle::{HostId, HostOperation, HostPhase, Maintenance, TenantId};

use crate::ExplanationContext;

impl ExplanationContext<'_> {
    /// Returns true if the work waits for a step on a host.
    pub(crate) fn has_awaited_steps(&self, work: &Maintenance) -> bool {
        work.steps().is_some_and(|steps| !steps.hosts.is_empty())
    }

    /// The steps on the hosts of the tenant's machines that are waited for.
    pub(crate) fn awaited_steps(&self, work: &Maintenance, tenant: TenantId) -> Vec<String> {
        let Some(steps) = work.steps() else { return Vec::new() };
        let machines = work.plan.part(tenant).map_or(&[][..], |part| &part.machines);
        let mut hosts: Vec<_> =
            machines.iter().filter_map(|id| self.cluster.machine(*id)).map(|machine| machine.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let phases = hosts.into_iter().filter_map(|host| Some((host, *steps.hosts.get(&host)?)));
        phases.filter_map(|(host, phase)| self.awaited_step(work, host, phase)).collect()
    }

    fn awaited_step(&self, work: &Maintenance, host: HostId, phase: HostPhase) -> Option<String> {
        let name = &self.cluster.host(host)?.name;
        let task = work.plan.cause.host_task()?;
        let what = match task.operation()? {
            HostOperation::Update => "update",
            HostOperation::Reboot => "restart",
            HostOperation::Fence => "fence",
        };
        let text = task.step.as_ref().and_then(|step| step.text.as_ref());
        let text = text.filter(|_| !self.viewer.is_limited).map(|text| format!(" ({text})"));
        let text = text.unwrap_or_default();
        Some(match phase {
            HostPhase::Step { .. } => format!("waits for the end of the {what} of host {name}{text}"),
            HostPhase::Aside { left: 1, .. } => {
                format!("the {what} of host {name}{text} waits for 1 machine to step aside")
            }
            HostPhase::Aside { left, .. } => {
                format!("the {what} of host {name}{text} waits for {left} machines to step aside")
            }
        })
    }
}
