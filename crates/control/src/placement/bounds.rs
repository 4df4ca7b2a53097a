//! Bounds of new machines: hosts, zones and fault domains.

use std::collections::BTreeSet;

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_lifecycle::{Cluster, HostId, Zone};

use crate::command::find::{Unknown, find_host};
use crate::placement::bad_wish::ScaleSetError;

/// Bounds of new machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The hosts; any, if not said.
    pub(crate) hosts: Option<BTreeSet<HostId>>,
    /// The zones, over which they are spread; any, if none is named.
    pub(crate) zones: BTreeSet<Zone>,
    /// Over how many fault domains they are spread, if that is said.
    pub(crate) fault_domains: Option<u16>,
}

impl Bounds {
    /// By the names of hosts and the numbers of zones.
    pub(crate) fn new(
        cluster: &Cluster,
        hosts: Option<&[String]>,
        zones: &[u16],
        fault_domains: Option<u16>,
    ) -> Result<Self, ScaleSetError> {
        if let Some(count) = fault_domains.filter(|count| !(1..=FAULT_DOMAINS_MAX).contains(count)) {
            return Err(ScaleSetError::FaultDomains(count));
        }
        let find = |hosts: &[String]| -> Result<_, Unknown> {
            hosts.iter().map(|host| find_host(cluster, host)).collect()
        };
        let zones = zones.iter().copied().map(Zone).collect();
        Ok(Self { hosts: hosts.map(find).transpose()?, zones, fault_domains })
    }

    /// True for a host within the bounds.
    pub(crate) fn admit(&self, id: HostId, zone: Option<Zone>) -> bool {
        let is_named = self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&id));
        is_named && (self.zones.is_empty() || zone.is_some_and(|zone| self.zones.contains(&zone)))
    }
}
