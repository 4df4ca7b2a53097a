//! Requests that require notice: they are refused if no machine gets any.

use std::collections::BTreeSet;

use forewarn_lifecycle::{Cause, Change, Cluster, Health, HostId, RolloutId, Tenant, TenantId};

use super::commands::change_of;
use super::draft::ClusterDraft;
use crate::error::ControlError;
use crate::request::RequestContext;
use crate::view::describe::join_names;

impl ClusterDraft<'_> {
    /// Refuses a request that requires notice if it announces no event, and begins no work on a host with machines of
    /// an enrolled tenant.
    pub(super) fn check_notice(&self, context: &RequestContext) -> Result<(), ControlError> {
        if !context.require_notice {
            return Ok(());
        }
        let mut audience = Audience::default();
        self.draft.records.iter().filter_map(change_of).for_each(|change| audience.add(change));
        audience.check(self.rules())
    }
}

/// The tenants and hosts that a request concerns.
#[derive(Debug, Default)]
struct Audience {
    /// True if an event was announced.
    is_notified: bool,
    /// Tenants of work that makes events.
    tenants: BTreeSet<TenantId>,
    /// Hosts whose machines are announced events now or later: those of rollouts, and those that machines leave.
    hosts: BTreeSet<HostId>,
    /// Rollouts of the request.
    rollouts: BTreeSet<RolloutId>,
}

impl Audience {
    fn add(&mut self, change: &Change) {
        if let Change::RolloutPlanned { rollout, hosts, .. } = change {
            self.rollouts.insert(*rollout);
            self.hosts.extend(hosts);
        }
        if let Change::ModeEntered { host, .. }
        | Change::HealthChanged { host, health: Health::Degraded | Health::Failed } = change
        {
            self.hosts.insert(*host);
        }
        if let Change::Planned(plan) = change
            && plan.cause.makes_events()
            && self.is_of_request(&plan.cause)
        {
            self.is_notified |= plan.parts.iter().any(|part| part.announcement.is_some());
            self.tenants.extend(plan.parts.iter().map(|part| part.tenant));
        }
    }

    /// Returns false for a group of another rollout, which went on because the request has made room.
    fn is_of_request(&self, cause: &Cause) -> bool {
        cause.rollout().is_none_or(|rollout| self.rollouts.contains(&rollout))
    }

    fn check(self, cluster: &Cluster) -> Result<(), ControlError> {
        if self.is_notified {
            return Ok(());
        }
        let on_hosts = self.hosts.iter().flat_map(|host| cluster.machines_on(*host));
        let affected = on_hosts.filter_map(|machine| Some(cluster.machine(machine)?.tenant));
        let mut tenants = self.tenants;
        for id in affected {
            if cluster.tenant(id).is_some_and(Tenant::is_enrolled) {
                return Ok(());
            }
            tenants.insert(id);
        }
        let names = tenants.iter().filter_map(|id| Some(cluster.tenant(*id)?.name.to_string()));
        let names: Vec<_> = names.collect();
        Err(match names.as_slice() {
            [] => ControlError::NoEvent,
            [only] => ControlError::NoNotice(format!("tenant {only} is not enrolled")),
            several => ControlError::NoNotice(format!("tenants {} are not enrolled", join_names(several))),
        })
    }
}
