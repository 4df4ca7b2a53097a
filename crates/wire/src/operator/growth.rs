//! More instances of a scale set: where they may be, and the commands that put them there.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_lifecycle::{Cluster, HostId, Orchestration, ScaleSet, Zone};

use super::command::NamedCommand;
use super::entry::InstanceEntry;
use super::find::{Unknown, find_host};
use super::scaleset::{BadWish, leaving};
use super::spread::Spread;

/// Where new instances may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The hosts; any, if not said.
    pub(super) hosts: Option<BTreeSet<HostId>>,
    /// The zones, over which they are spread; any, if none is named.
    pub(super) zones: BTreeSet<Zone>,
    /// Over how many fault domains they are spread, if that is said.
    pub(super) fault_domains: Option<u16>,
}

impl Bounds {
    /// By the names of hosts and the numbers of zones.
    pub(super) fn new(
        cluster: &Cluster,
        hosts: Option<&[String]>,
        zones: &[u16],
        fault_domains: Option<u16>,
    ) -> Result<Self, BadWish> {
        if let Some(count) = fault_domains.filter(|count| !(1..=FAULT_DOMAINS_MAX).contains(count)) {
            return Err(BadWish::FaultDomains(count));
        }
        let find = |hosts: &[String]| -> Result<_, Unknown> {
            hosts.iter().map(|host| find_host(cluster, host)).collect()
        };
        let zones = zones.iter().copied().map(Zone).collect();
        Ok(Self { hosts: hosts.map(find).transpose()?, zones, fault_domains })
    }

    /// Whether a host is one of those.
    pub(super) fn admit(&self, id: HostId, zone: Option<Zone>) -> bool {
        let is_named = self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&id));
        is_named && (self.zones.is_empty() || zone.is_some_and(|zone| self.zones.contains(&zone)))
    }
}

/// That many more instances, each where there is the most room for it.
pub(super) fn grow(
    cluster: &Cluster,
    name: &str,
    kind: (Orchestration, Option<&ScaleSet>),
    wanted: usize,
    bounds: &Bounds,
) -> Result<Vec<NamedCommand>, BadWish> {
    let places = Spread::new(cluster, kind, bounds, &leaving(cluster)).places(wanted);
    if places.len() < wanted {
        return Err(BadWish::NoHost { set: name.to_owned(), wanted, missing: wanted - places.len() });
    }
    let host = |id: HostId| cluster.host(id).map(|host| host.name.to_string()).unwrap_or_default();
    let admit = places.into_iter().map(|place| NamedCommand::AdmitInstance {
        scale_set: name.to_owned(),
        instance: InstanceEntry {
            id: None,
            host: host(place.host),
            update_domain: place.update_domain,
            fault_domain: place.fault_domain,
            addresses: Vec::new(),
            tags: BTreeMap::new(),
        },
    });
    Ok(admit.collect())
}
