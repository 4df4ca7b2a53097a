//! Choice of the instances that are removed when a scale set shrinks.
//!
//! Instances that are being deleted count as gone. Protected instances stay.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Cluster, FaultDomain, MachineId, ScaleSet, Zone};

use crate::placement::instances::instances;
use crate::placement::scale_set_error::ScaleSetError;

/// Choice of the instances to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaleIn {
    pub rule: ScaleInRule,
    /// Numbers of protected instances.
    pub protected: BTreeSet<u32>,
}

/// Rule for the choice of the instances to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleInRule {
    /// The newest instance of the fullest fault domain of the fullest zone.
    #[default]
    Default,
    /// The instances with the highest numbers.
    Newest,
    /// The instances with the lowest numbers.
    Oldest,
}

/// The numbers of `count` instances to remove, in this order.
///
/// # Errors
/// Fails if too many instances are protected.
pub fn pick_for_scale_in(
    cluster: &Cluster,
    set: &ScaleSet,
    count: usize,
    how: &ScaleIn,
) -> Result<Vec<u32>, ScaleSetError> {
    let mut remaining = RemainingInstances::new(cluster, set, &how.protected);
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let next = match how.rule {
            ScaleInRule::Default => remaining.newest_of_the_fullest(),
            ScaleInRule::Newest => remaining.free.last_key_value().map(|(number, _)| *number),
            ScaleInRule::Oldest => remaining.free.first_key_value().map(|(number, _)| *number),
        };
        let Some(number) = next else {
            let (set, missing) = (set.name.to_string(), count - chosen.len());
            return Err(ScaleSetError::Protected { set, wanted: count, missing });
        };
        remaining.remove(number);
        chosen.push(number);
    }
    Ok(chosen)
}

/// Zone and fault domain of an instance.
type InstanceDomain = (Option<Zone>, FaultDomain);

/// The instances that remain so far.
struct RemainingInstances {
    /// Instances that may be removed, by number.
    free: BTreeMap<u32, InstanceDomain>,
    /// Number of instances, including protected ones.
    in_zones: BTreeMap<Option<Zone>, usize>,
    in_domains: BTreeMap<InstanceDomain, usize>,
}

impl RemainingInstances {
    fn new(cluster: &Cluster, set: &ScaleSet, protected: &BTreeSet<u32>) -> Self {
        let domain = |id: MachineId| {
            let machine = cluster.machine(id)?;
            Some((cluster.host(machine.host).and_then(|host| host.zone), machine.fault_domain))
        };
        let mut remaining =
            Self { free: BTreeMap::new(), in_zones: BTreeMap::new(), in_domains: BTreeMap::new() };
        for (number, id) in instances(cluster, set).into_iter().filter(|(_, id)| !cluster.is_leaving(*id)) {
            let Some(domain) = domain(id) else { continue };
            *remaining.in_zones.entry(domain.0).or_default() += 1;
            *remaining.in_domains.entry(domain).or_default() += 1;
            if !protected.contains(&number) {
                remaining.free.insert(number, domain);
            }
        }
        remaining
    }

    /// Ties are broken by the newest instance.
    fn newest_of_the_fullest(&self) -> Option<u32> {
        let count = |of: Option<&usize>| of.copied().unwrap_or(0);
        let fullness = |(number, domain): (&u32, &InstanceDomain)| {
            (count(self.in_zones.get(&domain.0)), count(self.in_domains.get(domain)), *number)
        };
        self.free.iter().map(fullness).max().map(|(_, _, number)| number)
    }

    fn remove(&mut self, number: u32) {
        let Some(domain) = self.free.remove(&number) else { return };
        let less = |count: &mut usize| *count = count.saturating_sub(1);
        self.in_zones.entry(domain.0).and_modify(less);
        self.in_domains.entry(domain).and_modify(less);
    }
}
