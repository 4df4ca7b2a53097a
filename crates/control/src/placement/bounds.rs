//! Constraints on new machines: hosts, zones and fault domains.

use std::collections::BTreeSet;

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_lifecycle::{Cluster, HostId, Size, Zone};

use crate::command::lookup::{LookupError, find_host};
use crate::placement::scale_set_error::ScaleSetError;

/// Constraints on new machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The hosts; any host if None.
    pub(crate) hosts: Option<BTreeSet<HostId>>,
    /// The zones over which they are spread; any zone if empty.
    pub(crate) zones: BTreeSet<Zone>,
    /// The number of fault domains over which they are spread, if set.
    pub(crate) fault_domains: Option<u16>,
    /// The size of each.
    pub(crate) size: Size,
}

/// Checks a number of fault domains.
pub(crate) fn check_fault_domains(count: Option<u16>) -> Result<(), ScaleSetError> {
    let wrong = count.filter(|count| !(1..=FAULT_DOMAINS_MAX).contains(count));
    wrong.map_or(Ok(()), |count| Err(ScaleSetError::FaultDomains(count)))
}

impl Bounds {
    /// Resolves the names of hosts.
    pub(crate) fn new(
        cluster: &Cluster,
        hosts: Option<&[String]>,
        zones: &[u16],
        fault_domains: Option<u16>,
    ) -> Result<Self, ScaleSetError> {
        check_fault_domains(fault_domains)?;
        let find = |hosts: &[String]| -> Result<_, LookupError> {
            hosts.iter().map(|host| find_host(cluster, host)).collect()
        };
        let zones = zones.iter().copied().map(Zone).collect();
        Ok(Self { hosts: hosts.map(find).transpose()?, zones, fault_domains, size: Size::NONE })
    }

    /// Returns true for a host within the constraints.
    pub(crate) fn admit(&self, id: HostId, zone: Option<Zone>) -> bool {
        let is_named = self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&id));
        is_named && (self.zones.is_empty() || zone.is_some_and(|zone| self.zones.contains(&zone)))
    }
}
