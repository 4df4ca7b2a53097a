//! Windows of tenants: changed, and respected by groups of rollouts.
//!
//! A group is announced if its notice ends while a window of its rollout and of each of its tenants is open. It starts
//! in such an hour; otherwise it is held. Clusters without windows of tenants pay for one comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_types::{HostId, TenantId, Timestamp};

use super::draft::Draft;
use super::rollouts::notice_of;
use crate::change::Change;
use crate::common_hours::{HORIZON, is_open, next_common};
use crate::host_step::HostTask;
use crate::limits::{HOSTS_SEARCHED_PER_GROUP_MAX, HOSTS_TRIED_PER_GROUP_MAX, WINDOWS_PER_TENANT_MAX};
use crate::maintenance::Plan;
use crate::refusal::Refusal;
use crate::rollout::{RolloutTerms, Standing};
use crate::tenant::Shape;
use crate::tenant_windows::WindowOwner;
use crate::window::{self, Window};

impl Draft<'_> {
    /// Gives a tenant or a scale set other windows.
    pub(super) fn change_windows(&mut self, owner: WindowOwner, windows: &[Window]) -> Result<(), Refusal> {
        match owner {
            WindowOwner::ScaleSet(set) => drop(self.cluster.known_scale_set(set)?),
            WindowOwner::Tenant(id) => {
                let tenant = self.cluster.known_tenant(id)?;
                if let Shape::PlacementGroup(_) = tenant.shape {
                    return Err(Refusal::PartOfScaleSet(tenant.name.clone()));
                }
            }
        }
        Refusal::check(windows.len(), WINDOWS_PER_TENANT_MAX, "windows of a tenant")?;
        if self.cluster.windows_of(owner) != windows {
            self.changes.push(Change::WindowsChanged { owner, windows: windows.to_vec() });
        }
        Ok(())
    }

    /// The first of some tenants that has windows of which none is open at that time.
    pub(super) fn closed_tenant(
        &self,
        mut tenants: impl Iterator<Item = TenantId>,
        at: Timestamp,
    ) -> Option<TenantId> {
        if self.cluster.tenant_windows.is_empty() {
            return None;
        }
        tenants.find(|tenant| !is_open(self.cluster.windows_of_tenant(*tenant), at))
    }

    /// The waiting hosts that are tried: the first ones. If there are more, hosts whose tenants' windows are closed at
    /// the start give way to others.
    pub(super) fn first_waiting(
        &self,
        waiting: impl Iterator<Item = HostId>,
        work: &HostTask,
    ) -> Vec<HostId> {
        if self.cluster.tenant_windows.is_empty() {
            return waiting.take(HOSTS_TRIED_PER_GROUP_MAX).collect();
        }
        let searched: Vec<_> = waiting.take(HOSTS_SEARCHED_PER_GROUP_MAX).collect();
        if searched.len() <= HOSTS_TRIED_PER_GROUP_MAX {
            return searched;
        }
        let starts = self.now.wall.plus(notice_of(work)).rounded_up();
        let is_open =
            |host: &HostId| self.closed_tenant(self.tenants_on(*host).into_iter(), starts).is_none();
        let (open, closed): (Vec<_>, Vec<_>) = searched.into_iter().partition(is_open);
        open.into_iter().chain(closed).take(HOSTS_TRIED_PER_GROUP_MAX).collect()
    }

    /// The wait of a rollout for windows of tenants, if these hosts cannot be announced because of them.
    pub(super) fn tenant_window_standing(
        &self,
        terms: &RolloutTerms,
        notice: Duration,
        closed: &[HostId],
    ) -> Option<Standing> {
        let not_before = self.now.wall.plus(notice).rounded_up();
        let mut opens = BTreeMap::<BTreeSet<TenantId>, Option<Timestamp>>::new();
        for host in closed {
            let tenants = self.tenants_on(*host);
            opens
                .entry(tenants)
                .or_insert_with_key(|tenants| self.next_common(&terms.windows, tenants, not_before));
        }
        let first = closed.first()?;
        let tenant = self.closed_tenant(self.tenants_on(*first).into_iter(), not_before)?;
        let opens = opens.into_values().flatten().min();
        let announces = opens.map(|opens| window::announcement(self.now.wall, opens, notice));
        Some(Standing::TenantWindow { tenant, announces })
    }

    /// The first time at which a rollout may work on machines of these tenants; `None` if their windows never meet.
    fn next_common<'t>(
        &self,
        windows: &[Window],
        tenants: impl IntoIterator<Item = &'t TenantId>,
        at: Timestamp,
    ) -> Option<Timestamp> {
        let mut lists = vec![windows];
        lists.extend(tenants.into_iter().map(|tenant| self.cluster.windows_of_tenant(*tenant)));
        lists.retain(|list| !list.is_empty());
        next_common(&lists, at)
    }

    /// The first time from then on at which the windows of a rollout and of the tenants of a plan are open. If they
    /// never meet, the end of the search: the plan is looked at again then, or when windows change.
    pub(super) fn next_open_for(&self, windows: &[Window], plan: &Plan, at: Timestamp) -> Timestamp {
        if self.cluster.tenant_windows.is_empty() {
            return window::next_open(windows, at);
        }
        let tenants: BTreeSet<_> = plan.parts.iter().map(|part| part.tenant).collect();
        self.next_common(windows, &tenants, at).unwrap_or_else(|| at.plus(HORIZON))
    }

    /// Refuses a rollout if it could never work on one of its hosts.
    pub(super) fn check_windows_meet(
        &self,
        terms: &RolloutTerms,
        hosts: impl IntoIterator<Item = HostId>,
    ) -> Result<(), Refusal> {
        if self.cluster.tenant_windows.is_empty() {
            return Ok(());
        }
        let hosts: BTreeSet<_> = hosts.into_iter().collect();
        let mut tenants_by_host = BTreeMap::<HostId, BTreeSet<TenantId>>::new();
        for tenant in self.cluster.tenants_with_windows() {
            let machines = self.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
            let of_tenant = machines.iter().filter_map(|id| self.cluster.machine(*id));
            for machine in of_tenant.filter(|machine| hosts.contains(&machine.host)) {
                tenants_by_host.entry(machine.host).or_default().insert(tenant);
            }
        }
        let mut checked = BTreeSet::new();
        for (host, tenants) in tenants_by_host {
            if checked.contains(&tenants) {
                continue;
            }
            if self.next_common(&terms.windows, &tenants, self.now.wall).is_none() {
                let names = tenants.iter().filter_map(|tenant| self.cluster.tenant(*tenant));
                let tenants = names.map(|tenant| tenant.name.clone()).collect();
                return Err(Refusal::WindowsNeverMeet {
                    host: self.cluster.known_host(host)?.name.clone(),
                    tenants,
                });
            }
            checked.insert(tenants);
        }
        Ok(())
    }

    /// The tenants with windows that have machines on a host.
    fn tenants_on(&self, host: HostId) -> BTreeSet<TenantId> {
        let machines = self.cluster.machines_on(host);
        let machines = machines.iter().filter_map(|id| self.cluster.machine(*id));
        let tenants = machines.map(|machine| machine.tenant);
        tenants.filter(|tenant| !self.cluster.windows_of_tenant(*tenant).is_empty()).collect()
    }
}
