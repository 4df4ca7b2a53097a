//! Scale sets with a number of instances: the instances that they lack, placed by the server, and those that they have
//! too many.
//!
//! Hosts and other machines of the same file come first, so the placement is planned on a copy of the cluster that has
//! carried out the differences so far.

use std::collections::BTreeSet;

use forewarn_lifecycle::{Change, Cluster, Health, Now};

use super::list::DifferenceList;
use super::{CurrentFleet, UnlistedObjects};
use crate::command::entry::{InstanceEntry, PlacementEntry, ScaleSetEntry};
use crate::command::named::NamedCommand;
use crate::command::resolve::Resolved;
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::position::FleetPosition;
use crate::placement::ScaleSetError;
use crate::placement::bounds::Bounds;
use crate::placement::grow::place_instances;
use crate::placement::instances::staying;

pub(super) fn growth(
    list: &mut DifferenceList,
    current: CurrentFleet<'_>,
    wanted: &Fleet,
    unmentioned: UnlistedObjects,
) -> Result<(), FleetFileError> {
    let mut planning = None;
    for (index, set) in wanted.scale_sets.iter().enumerate() {
        let Some(count) = set.count.map(usize::from) else { continue };
        let was = current.scale_set_named(&set.name).map_or(0, |(_, was)| staying(current.cluster, was));
        list.place = FleetPosition::default().item("scale_set", index).member("instances");
        if was > count && unmentioned == UnlistedObjects::Keep {
            list.later(format!("~ {}: instances {was} -> {count}", set.name));
        }
        if was < count {
            let planning = planning.get_or_insert_with(|| Planning::new(list, current, wanted, unmentioned));
            let placed = planning.place(set, count - was);
            let error = |error: ScaleSetError| FleetFileError::Entry {
                place: list.place.clone(),
                text: error.to_string(),
            };
            for instance in placed.map_err(error)? {
                let number = instance.id.unwrap_or_default();
                let text = format!("+ instance {} on {}", set.instance_name(number), instance.host);
                list.push(text, NamedCommand::AdmitInstance { scale_set: set.name.clone(), instance });
            }
        }
    }
    Ok(())
}

/// A copy of the cluster that has carried out the differences so far.
struct Planning {
    cluster: Cluster,
    now: Now,
}

impl Planning {
    fn new(
        list: &DifferenceList,
        current: CurrentFleet<'_>,
        wanted: &Fleet,
        unmentioned: UnlistedObjects,
    ) -> Self {
        let mut planning = Self { cluster: current.cluster.clone(), now: current.now };
        for command in list.entries.iter().filter_map(|one| one.command.as_ref()) {
            planning.carry_out(command);
        }
        match unmentioned {
            UnlistedObjects::Keep => {}
            UnlistedObjects::Remove | UnlistedObjects::Forget => planning.close_unlisted(wanted),
        }
        planning
    }

    /// Carries out a command. If the rules refuse it, they refuse the whole file later, and name its entry.
    fn carry_out(&mut self, command: &NamedCommand) {
        let Ok(Resolved::Rules(command) | Resolved::Admit(command, _)) = command.resolve(&self.cluster)
        else {
            return;
        };
        for change in self.cluster.decide(self.now, &command).unwrap_or_default() {
            drop(self.cluster.evolve(self.now, &change));
        }
    }

    /// Keeps new machines from hosts that the file does not list: these hosts are to go.
    fn close_unlisted(&mut self, wanted: &Fleet) {
        let listed: BTreeSet<_> = wanted.hosts.iter().map(|host| host.name.as_str()).collect();
        let unlisted = self.cluster.hosts().filter(|(_, host)| !listed.contains(host.name.as_str()));
        let unlisted: Vec<_> = unlisted.map(|(host, _)| host).collect();
        for host in unlisted {
            // In this copy only: placement passes over hosts that are not healthy.
            drop(self.cluster.evolve(self.now, &Change::HealthChanged { host, health: Health::Degraded }));
        }
    }

    /// Places for that many more instances of a scale set, with the numbers that they get.
    fn place(&mut self, set: &ScaleSetEntry, missing: usize) -> Result<Vec<InstanceEntry>, ScaleSetError> {
        let known = self.cluster.scale_set_named(&set.name).and_then(|id| self.cluster.scale_set(id));
        // Without the scale set, its admission was refused.
        let Some(known) = known else { return Ok(Vec::new()) };
        let (first, kind) = (known.next_instance, (known.orchestration, Some(known)));
        let PlacementEntry { hosts, zones, fault_domains } = set.placement.clone().unwrap_or_default();
        let bounds = Bounds::new(&self.cluster, hosts.as_deref(), &zones, fault_domains)?;
        let placed = place_instances(&self.cluster, &set.name, kind, missing, &bounds)?;
        let numbered = (first..).zip(placed).map(|(id, one)| InstanceEntry { id: Some(id), ..one });
        let placed: Vec<_> = numbered.collect();
        for instance in &placed {
            let (scale_set, instance) = (set.name.clone(), instance.clone());
            self.carry_out(&NamedCommand::AdmitInstance { scale_set, instance });
        }
        Ok(placed)
    }
}
