//! Records of rollouts: pending hosts, finished hosts and terms of each, derived from changes alone.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};
use crate::tenant_windows::open;

#[derive(Default)]
pub struct RolloutRecords {
    rollouts: BTreeMap<RolloutId, RolloutRecord>,
    groups: BTreeMap<MaintenanceId, (RolloutId, Vec<HostId>)>,
}

struct RolloutRecord {
    terms: RolloutTerms,
    owed: BTreeSet<HostId>,
    worked: BTreeSet<HostId>,
    skipped: BTreeSet<HostId>,
    paused: bool,
    group_over: Option<Steady>,
}

impl RolloutRecords {
    /// Called after a change was applied. Returns the promises that it breaks, and the kind of observation.
    pub fn changed(
        &mut self,
        cluster: &Cluster,
        now: Now,
        change: &Change,
        forced: bool,
    ) -> (BrokenPromises, &'static str) {
        let mut broken = Vec::new();
        let mut seen = "";
        match change {
            Change::RolloutPlanned { rollout, terms, hosts, .. } => {
                let book = RolloutRecord {
                    terms: terms.clone(),
                    owed: hosts.iter().copied().collect(),
                    worked: BTreeSet::new(),
                    skipped: BTreeSet::new(),
                    paused: false,
                    group_over: None,
                };
                self.rollouts.insert(*rollout, book);
            }
            Change::RolloutPaused { rollout, .. } => {
                seen = "rollout paused";
                self.book(*rollout).paused = true;
            }
            Change::RolloutResumed(rollout) => self.book(*rollout).paused = false,
            Change::RolloutChanged { rollout, terms, added, removed } => {
                let book = self.book(*rollout);
                book.terms = terms.clone();
                book.owed.retain(|host| !removed.contains(host));
                for host in added {
                    book.owed.insert(*host);
                    book.worked.remove(host);
                    book.skipped.remove(host);
                }
            }
            Change::Planned(plan) => self.announced(cluster, now, plan, &mut broken),
            Change::Started { maintenance, .. } => {
                seen = self.started(now, *maintenance, forced, &mut broken);
            }
            Change::RolloutEnded { rollout, how } => self.ended(cluster, *rollout, *how, &mut broken),
            _ => {}
        }
        self.record_ended_groups(cluster, now);
        (broken, seen)
    }

    fn book(&mut self, id: RolloutId) -> &mut RolloutRecord {
        self.rollouts.get_mut(&id).expect("it was planned")
    }

    fn announced(&mut self, cluster: &Cluster, now: Now, plan: &Plan, broken: &mut BrokenPromises) {
        let Cause::HostWork { rollout, hosts, .. } = &plan.cause else { return };
        let book = self.rollouts.get(rollout).expect("it was planned");
        let mut note = |promise, what: String| broken.push((promise, format!("rollout {rollout}: {what}")));
        if book.paused || cluster.brake() == Brake::On {
            note(Promise::Paused, "announces although it is held".to_owned());
        }
        if book.group_over.is_some_and(|over| now.steady < over.plus(book.terms.pause_between)) {
            note(Promise::Paused, "does not rest between groups".to_owned());
        }
        let max = book.terms.hosts_at_once.map_or(usize::MAX, |max| max.get().into());
        if hosts.len() > max {
            note(Promise::Budgets, format!("{} hosts at once", hosts.len()));
        }
        if hosts.iter().any(|host| !book.owed.contains(host) || book.worked.contains(host)) {
            note(Promise::EachHostOnce, format!("{hosts:?} are not all owed"));
        }
        if !open(&book.terms.windows, plan.not_before) {
            note(Promise::Windows, format!("is announced for {:?}", plan.not_before));
        }
        for part in &plan.parts {
            over_budget(cluster, &book.terms, part.tenant, &mut note);
        }
        self.groups.insert(plan.id, (*rollout, hosts.clone()));
    }

    fn started(
        &mut self,
        now: Now,
        id: MaintenanceId,
        forced: bool,
        broken: &mut BrokenPromises,
    ) -> &'static str {
        let Some((rollout, hosts)) = self.groups.get(&id).cloned() else { return "" };
        let book = self.book(rollout);
        if !forced && !open(&book.terms.windows, now.wall) {
            broken.push((Promise::Windows, format!("rollout {rollout} starts at {:?}", now.wall)));
        }
        let limited = !book.terms.windows.is_empty();
        for host in hosts {
            if !book.worked.insert(host) {
                broken.push((Promise::EachHostOnce, format!("{host} is worked on twice")));
            }
        }
        if limited { "started in a window" } else { "started at any time" }
    }

    /// Records groups that have ended. A group that has not started was skipped, unless its hosts wait again.
    fn record_ended_groups(&mut self, cluster: &Cluster, now: Now) {
        let over = |id: &MaintenanceId| cluster.maintenance(*id).is_none();
        let over: Vec<_> = self.groups.keys().copied().filter(over).collect();
        for id in over {
            let (rollout, hosts) = self.groups.remove(&id).expect("listed");
            let waits = |host| cluster.rollout(rollout).is_some_and(|known| known.waiting.contains(host));
            let book = self.book(rollout);
            if hosts.iter().any(|host| book.worked.contains(host)) {
                book.group_over = Some(now.steady);
            }
            for host in hosts {
                if !book.worked.contains(&host) && !waits(host) {
                    book.skipped.insert(host);
                }
            }
        }
        // A host that fails leaves its group before it starts.
        for (rollout, hosts) in self.groups.values_mut() {
            let waits = |host| cluster.rollout(*rollout).is_some_and(|known| known.waiting.contains(host));
            hosts.retain(|host| !waits(*host));
        }
    }

    fn ended(&mut self, cluster: &Cluster, id: RolloutId, how: RolloutEnd, broken: &mut BrokenPromises) {
        let book = self.book(id);
        let past = &cluster.ended_rollout(id).expect("it has just ended").rollout.past;
        let done: BTreeSet<_> = book.worked.union(&book.skipped).copied().collect();
        if how == RolloutEnd::Finished && done != book.owed {
            broken.push((
                Promise::EachHostOnce,
                format!("rollout {id} forgot some of {:?}: {done:?}", book.owed),
            ));
        }
        let processed =
            past.iter().filter(|(_, result)| **result != HostResult::Skipped).map(|(host, _)| *host);
        if how == RolloutEnd::Finished && processed.collect::<BTreeSet<_>>() != book.worked {
            broken.push((Promise::EachHostOnce, format!("rollout {id} tells {past:?} of {:?}", book.worked)));
        }
    }
}

/// Compares the planned work of a tenant with the terms of a rollout that has just added to it.
fn over_budget(
    cluster: &Cluster,
    terms: &RolloutTerms,
    tenant: TenantId,
    note: &mut impl FnMut(Promise, String),
) {
    let works = cluster.maintenances().filter(|work| matches!(work.plan.cause, Cause::HostWork { .. }));
    let parts = works.flat_map(|work| &work.plan.parts).filter(|part| part.tenant == tenant);
    let machines: Vec<_> =
        parts.flat_map(|part| &part.machines).filter_map(|id| cluster.machine(*id)).collect();
    let hosts: BTreeSet<_> = machines.iter().map(|machine| machine.host).collect();
    let domains: BTreeSet<_> = machines.iter().map(|machine| machine.fault_domain.0).collect();
    let all = cluster.tenant(tenant).map_or(0, |tenant| tenant.machines().len());
    let share = terms.tenant_share.map_or(usize::MAX, |share| usize::from(share.percent()) * all / 100);
    if machines.len() > share.max(1) && hosts.len() > 1 {
        note(Promise::Budgets, format!("{} of {all} machines of {tenant}", machines.len()));
    }
    if terms.fault_domains == FaultDomains::OneAtATime && domains.len() > 1 && hosts.len() > 1 {
        note(Promise::Budgets, format!("{domains:?} of {tenant}"));
    }
}
