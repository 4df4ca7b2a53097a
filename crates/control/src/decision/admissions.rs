//! Audit entries of objects that a large request adds: one for many hosts, and one for many machines of a tenant.
//!
//! An entry of its own for each of them would cost more than the object. Entries about several tenants would be hidden
//! from callers that may see only one of them, so each entry is about one.

use std::collections::BTreeSet;

use forewarn_lifecycle::{Change, Cluster, Machine};

use crate::audit::AuditFact;

/// Hosts or machines of one entry.
const ADMISSIONS_PER_ENTRY_MAX: usize = 1_000;

/// Added hosts, or a tenant and its added machines, that have no entry yet.
pub(super) struct Admissions {
    /// The fact of the first object, with the machines of all.
    fact: AuditFact,
    /// Hosts of all objects.
    hosts: BTreeSet<String>,
    counts: AdmissionCounts,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct AdmissionCounts {
    hosts: usize,
    tenants: usize,
    machines: usize,
}

impl AdmissionCounts {
    /// Counts an added object. None if the change adds none, or one that has an entry of its own.
    fn of(change: &Change) -> Option<Self> {
        let none = Self::default();
        if let Change::HostAdmitted { .. } = change {
            Some(Self { hosts: 1, ..none })
        } else if let Change::TenantAdmitted { .. } = change {
            Some(Self { tenants: 1, ..none })
        } else if let Change::MachineAdmitted { .. } = change {
            Some(Self { machines: 1, ..none })
        } else {
            None
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            hosts: self.hosts + other.hosts,
            tenants: self.tenants + other.tenants,
            machines: self.machines + other.machines,
        }
    }

    fn all(self) -> usize {
        self.hosts + self.tenants + self.machines
    }
}

impl Admissions {
    /// Returns true if admissions of that change can be collected.
    pub(super) fn collects(change: &Change) -> bool {
        AdmissionCounts::of(change).is_some()
    }

    /// Adds the fact of a change that [`Self::collects`] accepts. Returns the collected fact that is complete, if it
    /// does not go on with this one.
    pub(super) fn add(
        collected: &mut Option<Box<Self>>,
        change: &Change,
        fact: AuditFact,
    ) -> Option<AuditFact> {
        let count = AdmissionCounts::of(change).unwrap_or_default();
        match collected {
            Some(former) if former.continues_with(&fact) => {
                former.fact.machines.extend(fact.machines);
                former.hosts.extend(fact.hosts);
                former.counts = former.counts.plus(count);
                None
            }
            Some(_) | None => {
                let hosts = fact.hosts.iter().cloned().collect();
                let new = Box::new(Self { fact, hosts, counts: count });
                collected.replace(new).map(|complete| complete.into_fact())
            }
        }
    }

    /// Adds a machine of the same tenant without a fact of its own. Returns false if the collected fact does not go on
    /// with it.
    pub(super) fn add_machine(&mut self, cluster: &Cluster, new: &Machine) -> bool {
        let (Some(tenant), Some(host)) = (cluster.tenant(new.tenant), cluster.host(new.host)) else {
            return false;
        };
        let (tenant, host) = (tenant.name.as_str(), host.name.as_str());
        let is_of_tenant = matches!(self.fact.tenants.as_slice(), [only] if only == tenant);
        if !is_of_tenant || self.is_complete() {
            return false;
        }
        self.fact.machines.push([tenant, "/", new.name.as_str()].concat());
        if !self.hosts.contains(host) {
            self.hosts.insert(host.to_owned());
        }
        self.counts.machines += 1;
        true
    }

    fn continues_with(&self, fact: &AuditFact) -> bool {
        self.fact.tenants == fact.tenants && !self.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.counts.all() >= ADMISSIONS_PER_ENTRY_MAX
    }

    /// The fact of all objects.
    pub(super) fn into_fact(self) -> AuditFact {
        let Self { mut fact, hosts, counts } = self;
        let tenant = fact.tenants.first().map(String::as_str).unwrap_or_default();
        let machines = match fact.machines.as_slice() {
            [only] => format!("machine {}", only.split_once('/').map_or(only.as_str(), |(_, name)| name)),
            several => format!("{} machines", several.len()),
        };
        fact.text = match counts {
            one if one.all() == 1 => fact.text,
            AdmissionCounts { hosts: 0, tenants: 0, .. } => format!("{machines} of {tenant} were added"),
            AdmissionCounts { hosts: 0, .. } => format!("tenant {tenant} and {machines} were added"),
            AdmissionCounts { hosts, .. } => format!("{hosts} hosts were added"),
        };
        fact.hosts = hosts.into_iter().collect();
        fact
    }
}
