//! More instances of a scale set: where they may be, and the commands that put them there.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_lifecycle::{Cluster, HostId, Orchestration, ScaleSet, Zone};

use crate::command::entry::InstanceEntry;
use crate::command::find::{Unknown, find_host};
use crate::command::named::NamedCommand;
use crate::placement::scale_set::{BadWish, leaving};
use crate::placement::spread::Spread;

/// Where new instances may be.
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
    pub(crate) fn admit(&self, id: HostId, zone: Option<Zone>) -> bool {
        let is_named = self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&id));
        is_named && (self.zones.is_empty() || zone.is_some_and(|zone| self.zones.contains(&zone)))
    }
}

/// That many more instances, each where there is the most room for it.
pub(crate) fn grow(
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
