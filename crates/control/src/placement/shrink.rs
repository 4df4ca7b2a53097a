//! Which instances go when a scale set shrinks.
//!
//! Those that are being deleted count as gone, and who is protected stays.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Cluster, FaultDomain, MachineId, ScaleSet, Zone};

use crate::placement::bad_wish::ScaleSetError;
use crate::placement::instances::{instances, leaving};

/// How it is chosen which instances go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaleIn {
    /// The rule.
    pub rule: ScaleInRule,
    /// The numbers of those that stay whatever the rule says.
    pub protected: BTreeSet<u32>,
}

/// A rule by which it is chosen which instances go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleInRule {
    /// From the zone that has the most, of its fault domain that has the most, the newest.
    #[default]
    Default,
    /// Those with the greatest numbers.
    Newest,
    /// Those with the smallest numbers.
    Oldest,
}

/// The numbers of the instances that go, in that order, so that there are `count` fewer.
///
/// # Errors
/// When too many of them are protected.
pub fn pick_for_scale_in(
    cluster: &Cluster,
    set: &ScaleSet,
    count: usize,
    how: &ScaleIn,
) -> Result<Vec<u32>, ScaleSetError> {
    let mut crowd = Crowd::new(cluster, set, &how.protected);
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let next = match how.rule {
            ScaleInRule::Default => crowd.newest_of_the_fullest(),
            ScaleInRule::Newest => crowd.free.last_key_value().map(|(number, _)| *number),
            ScaleInRule::Oldest => crowd.free.first_key_value().map(|(number, _)| *number),
        };
        let Some(number) = next else {
            let (set, missing) = (set.name.to_string(), count - chosen.len());
            return Err(ScaleSetError::Protected { set, wanted: count, missing });
        };
        crowd.remove(number);
        chosen.push(number);
    }
    Ok(chosen)
}

/// Where an instance is.
type Spot = (Option<Zone>, FaultDomain);

/// The instances that stay so far.
struct Crowd {
    /// Those that may go, by number.
    free: BTreeMap<u32, Spot>,
    /// How many there are, protected ones included.
    in_zones: BTreeMap<Option<Zone>, usize>,
    in_spots: BTreeMap<Spot, usize>,
}

impl Crowd {
    fn new(cluster: &Cluster, set: &ScaleSet, protected: &BTreeSet<u32>) -> Self {
        let spot = |id: MachineId| {
            let machine = cluster.machine(id)?;
            Some((cluster.host(machine.host).and_then(|host| host.zone), machine.fault_domain))
        };
        let mut crowd = Self { free: BTreeMap::new(), in_zones: BTreeMap::new(), in_spots: BTreeMap::new() };
        let leaving = leaving(cluster);
        for (number, id) in instances(cluster, set).into_iter().filter(|(_, id)| !leaving.contains(id)) {
            let Some(spot) = spot(id) else { continue };
            *crowd.in_zones.entry(spot.0).or_default() += 1;
            *crowd.in_spots.entry(spot).or_default() += 1;
            if !protected.contains(&number) {
                crowd.free.insert(number, spot);
            }
        }
        crowd
    }

    /// Of equals, the newest decides.
    fn newest_of_the_fullest(&self) -> Option<u32> {
        let count = |of: Option<&usize>| of.copied().unwrap_or(0);
        let crowded = |(number, spot): (&u32, &Spot)| {
            (count(self.in_zones.get(&spot.0)), count(self.in_spots.get(spot)), *number)
        };
        self.free.iter().map(crowded).max().map(|(_, _, number)| number)
    }

    fn remove(&mut self, number: u32) {
        let Some(spot) = self.free.remove(&number) else { return };
        let less = |count: &mut usize| *count = count.saturating_sub(1);
        self.in_zones.entry(spot.0).and_modify(less);
        self.in_spots.entry(spot).and_modify(less);
    }
}

#[cfg(test)]
#[path = "shrink/tests.rs"]
mod tests;
