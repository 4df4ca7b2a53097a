//! More instances of a scale set: the commands that add them.

use std::collections::BTreeMap;

use forewarn_lifecycle::{Cluster, HostId, Orchestration, ScaleSet};

use crate::command::entry::InstanceEntry;
use crate::command::named::NamedCommand;
use crate::placement::bounds::Bounds;
use crate::placement::scale_set_error::ScaleSetError;
use crate::placement::spread::{MachinePlacement, Spread};

/// Adds that many instances, each on the host with the most room for it.
pub(crate) fn grow(
    cluster: &Cluster,
    name: &str,
    kind: (Orchestration, Option<&ScaleSet>),
    wanted: usize,
    bounds: &Bounds,
) -> Result<Vec<NamedCommand>, ScaleSetError> {
    let placed = place_instances(cluster, name, kind, wanted, bounds)?.into_iter();
    let admit = |instance| NamedCommand::AdmitInstance { scale_set: name.to_owned(), instance };
    Ok(placed.map(admit).collect())
}

/// Places that many new instances of a scale set. They have no numbers yet.
pub(crate) fn place_instances(
    cluster: &Cluster,
    name: &str,
    kind: (Orchestration, Option<&ScaleSet>),
    wanted: usize,
    bounds: &Bounds,
) -> Result<Vec<InstanceEntry>, ScaleSetError> {
    let known = kind.1.and_then(|set| cluster.scale_set_named(set.name.as_str()));
    let size = known.map_or(bounds.size, |id| cluster.instance_size(id));
    let bounds = &Bounds { size, ..bounds.clone() };
    let places = Spread::new(cluster, kind, bounds).places(wanted);
    if places.len() < wanted {
        let missing = wanted - places.len();
        return Err(ScaleSetError::NoHost { set: name.to_owned(), wanted, missing, size });
    }
    let host = |id: HostId| cluster.host(id).map(|host| host.name.to_string()).unwrap_or_default();
    let instance = |place: MachinePlacement| InstanceEntry {
        id: None,
        host: host(place.host),
        update_domain: place.update_domain,
        fault_domain: place.fault_domain,
        addresses: Vec::new(),
        tags: BTreeMap::new(),
    };
    Ok(places.into_iter().map(instance).collect())
}
