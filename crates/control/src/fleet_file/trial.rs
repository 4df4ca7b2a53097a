//! A fleet file on trial: the rules decide it on an empty cluster in memory, before anything of it is sent or stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_lifecycle::{MachineId, Name, Now, Seed};

use crate::audit::Chain;
use crate::command::NamedCommand;
use crate::command::entry::{HostEntry, OrchestrationWord, ScaleSetEntry};
use crate::decision::{Environment, HypervisorKind, rehearse};
use crate::error::ControlError;
use crate::fleet_file::current::CurrentFleet;
use crate::fleet_file::difference::{UnlistedObjects, difference};
use crate::fleet_file::fleet::{Fleet, FleetFileError};
use crate::fleet_file::pieces::FleetPiece;
use crate::fleet_file::position::FleetPosition;
use crate::fleet_file::refused::refused_place;
use crate::state::{ClusterState, ControlState};
use crate::stream::ClusterId;

/// The reason why the rules reject a fleet file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetRejection {
    /// The file contradicts itself.
    #[error(transparent)]
    File(#[from] FleetFileError),
    /// The rules refuse an entry.
    #[error("{error}")]
    Entry {
        /// Position of the entry in the file.
        place: FleetPosition,
        error: ControlError,
    },
}

impl FleetRejection {
    /// Position of the entry that is the reason.
    #[must_use]
    pub fn place(&self) -> Option<&FleetPosition> {
        match self {
            Self::Entry { place, .. } | Self::File(FleetFileError::Entry { place, .. }) => Some(place),
            Self::File(FleetFileError::Malformed(_)) => None,
        }
    }
}

/// The cluster that a fleet file is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetCluster {
    /// An empty cluster: the file is all that there will be.
    Empty,
    /// A cluster that is not known here. It may have the hosts that machines of the file are on, and room for
    /// instances that it places.
    Unknown,
}

impl Fleet {
    /// Checks all pieces of the file by the rules, on an empty cluster in memory.
    ///
    /// # Errors
    /// Fails with the first entry that the rules refuse.
    pub fn try_in_memory(&self, target: TargetCluster) -> Result<(), FleetRejection> {
        self.check()?;
        let mut trial = Trial::new();
        if target == TargetCluster::Unknown {
            // A name that no host can have is reported where it is used.
            let names = self.hosts_of_others().into_iter().filter(|name| Name::new(name).is_ok());
            let hosts =
                names.map(|name| HostEntry { name: name.to_owned(), zone: None, cpus: None, memory: None });
            let assumed = Self { hosts: hosts.collect(), ..Self::default() };
            trial.apply(&assumed, &FleetPiece::default())?;
        }
        for piece in self.pieces() {
            let mut part = self.piece(&piece);
            if target == TargetCluster::Unknown {
                part.scale_sets.iter_mut().for_each(leave_to_server);
            }
            trial.apply(&part, &piece)?;
        }
        Ok(())
    }

    /// The hosts that machines of the file are on, and that the file does not list.
    fn hosts_of_others(&self) -> BTreeSet<&str> {
        let listed: BTreeSet<_> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let sets = self.availability_sets.iter().chain(&self.cloud_services);
        let machines = sets.flat_map(|set| &set.machines).map(|machine| machine.host.as_str());
        let instances = self.scale_sets.iter().flat_map(|set| &set.instances).map(|one| one.host.as_str());
        let used = self.vms.iter().map(|vm| vm.host.as_str()).chain(machines).chain(instances);
        used.filter(|host| !listed.contains(host)).collect()
    }
}

/// Leaves out the instances of which only the cluster knows the places: those that the server places, and those of
/// uniform scale sets, whose placement groups depend on instances that were deleted.
fn leave_to_server(set: &mut ScaleSetEntry) {
    (set.count, set.placement) = (None, None);
    match set.orchestration {
        OrchestrationWord::Uniform => set.instances.clear(),
        OrchestrationWord::Flexible => {}
    }
}

/// A cluster in memory.
struct Trial {
    state: ControlState,
    now: Now,
}

impl Trial {
    fn new() -> Self {
        Self { state: ControlState::new(Seed([0; 16])), now: Now::at_millis(0) }
    }

    /// Applies a piece of a file.
    fn apply(&mut self, part: &Fleet, piece: &FleetPiece) -> Result<(), FleetRejection> {
        let id = ClusterId::DEFAULT;
        // A new state has this cluster.
        let Some(cluster) = self.state.cluster_arc(id) else { return Ok(()) };
        let differences = self.difference(&cluster, part).map_err(|error| match error {
            FleetFileError::Entry { place, text } => {
                FleetFileError::Entry { place: piece.in_file(&place), text }
            }
            FleetFileError::Malformed(text) => FleetFileError::Malformed(text),
        })?;
        let commands: Vec<NamedCommand> = differences.iter().filter_map(|one| one.command.clone()).collect();
        let environment = Environment {
            now: self.now,
            audit: Chain::default(),
            hypervisor: HypervisorKind::Simulated,
            revision: 0,
            jammed: &BTreeSet::new(),
        };
        let after = rehearse((id, &cluster), &self.state.shared_arc(), &environment, &commands);
        let after = after.map_err(|refused| FleetRejection::Entry {
            place: piece.in_file(&refused_place(&differences, &refused)),
            error: refused.error,
        })?;
        self.state = self.state.with_cluster(id, after);
        Ok(())
    }

    fn difference(
        &self,
        cluster: &Arc<ClusterState>,
        part: &Fleet,
    ) -> Result<Vec<crate::fleet_file::Difference>, FleetFileError> {
        let details = |machine: MachineId| Some(cluster.details_of(machine));
        let (rules, site) = (cluster.rules(), cluster.site());
        let current = CurrentFleet { cluster: rules, site, details: &details, now: self.now };
        difference(current, part, UnlistedObjects::Keep)
    }
}
