//! The choice of a host for a machine.
//!
//! On one host all machines of a tenant share one update domain. A moving machine counts on both hosts.

use forewarn_types::{HostId, MachineId, TenantId, UpdateDomain};

use crate::cluster::Cluster;
use crate::command::Refusal;
use crate::fleet::{Health, Host, Machine};
use crate::limits::{MACHINES_PER_HOST_MAX, PLACEMENT_TRIES_MAX};

/// A move that is being decided and is not in the state yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) machine: MachineId,
    pub(crate) tenant: TenantId,
    pub(crate) update_domain: UpdateDomain,
    pub(crate) to: HostId,
}

impl Cluster {
    /// Another host that can take the machine: healthy, in the same zone, with room, without announced work, and
    /// without another update domain of its tenant. The search starts after the machine's own host and wraps around;
    /// `avoid` is sorted.
    pub(crate) fn find_host_for(
        &self,
        machine: &Machine,
        avoid: &[HostId],
        moves: &[Move],
    ) -> Option<HostId> {
        let zone = self.host(machine.host).and_then(|host| host.zone);
        let behind =
            self.healthy.range((zone, HostId(machine.host.0.saturating_add(1)))..=(zone, HostId(u32::MAX)));
        let before = self.healthy.range((zone, HostId(0))..(zone, machine.host));
        let candidates =
            behind.chain(before).map(|&(_, id)| id).filter(|id| avoid.binary_search(id).is_err());
        candidates.take(PLACEMENT_TRIES_MAX).find(|&to| self.fits(machine, to, moves))
    }

    fn fits(&self, machine: &Machine, to: HostId, moves: &[Move]) -> bool {
        let Some(host) = self.host(to) else { return false };
        let arriving = || moves.iter().filter(|other| other.to == to);
        let clashes = arriving()
            .any(|other| other.tenant == machine.tenant && other.update_domain != machine.update_domain);
        host.work.is_none()
            && host.machines.len() + arriving().count() < MACHINES_PER_HOST_MAX
            && !clashes
            && self.other_update_domain(host, machine.tenant, machine.update_domain).is_none()
    }

    /// An update domain of the tenant on the host, other than that one.
    pub(crate) fn other_update_domain(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Option<UpdateDomain> {
        let here = host.machines.iter().filter_map(|id| self.machine(*id));
        let mut domains =
            here.filter(|machine| machine.tenant == tenant).map(|machine| machine.update_domain);
        domains.find(|present| *present != update_domain)
    }

    /// Checks that a new machine may be placed on that host.
    pub(crate) fn check_admission(
        &self,
        host: HostId,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Result<(), Refusal> {
        let host = self.known_host(host)?;
        if host.health != Health::Healthy {
            return Err(Refusal::HostNotHealthy(host.name.clone()));
        }
        self.check_room(host, tenant, update_domain)
    }

    /// Refuses a host with planned work, a full host, and a host with another update domain of the tenant.
    pub(crate) fn check_room(
        &self,
        host: &Host,
        tenant: TenantId,
        update_domain: UpdateDomain,
    ) -> Result<(), Refusal> {
        if host.work.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        Refusal::check(host.machines.len() + 1, MACHINES_PER_HOST_MAX, "machines on the host")?;
        match self.other_update_domain(host, tenant, update_domain) {
            Some(present) => Err(Refusal::UpdateDomainClash {
                host: host.name.clone(),
                tenant: self.known_tenant(tenant)?.name.clone(),
                present: present.0,
                update_domain: update_domain.0,
            }),
            None => Ok(()),
        }
    }
}
