//! The fleet file: the wanted hosts and tenants.

use forewarn_lifecycle::{Cluster, Machine, MachineId, ScaleSet, Shape, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{
    HostEntry, InstanceEntry, MachineEntry, ScaleSetEntry, SetEntry, Site, VmEntry, notices, spot,
};
use crate::command::named::SiteChange;
use crate::command::resolve::MachineDetails;
use crate::fleet_file::position::FleetPosition;

/// Bytes of a fleet file.
pub const FLEET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A fleet: hosts and tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Location, subscription and resource group that machines show. Absent members keep their value.
    #[serde(default)]
    pub site: SiteChange,
    /// Hosts.
    #[serde(default, rename = "host", skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEntry>,
    /// Standalone machines.
    #[serde(default, rename = "vm", skip_serializing_if = "Vec::is_empty")]
    pub vms: Vec<VmEntry>,
    /// Availability sets.
    #[serde(default, rename = "availability_set", skip_serializing_if = "Vec::is_empty")]
    pub availability_sets: Vec<SetEntry>,
    /// Cloud services.
    #[serde(default, rename = "cloud_service", skip_serializing_if = "Vec::is_empty")]
    pub cloud_services: Vec<SetEntry>,
    /// Scale sets.
    #[serde(default, rename = "scale_set", skip_serializing_if = "Vec::is_empty")]
    pub scale_sets: Vec<ScaleSetEntry>,
}

/// The reason why a fleet file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetFileError {
    /// The file is too long.
    #[error("fleet file is too long: at most {FLEET_BYTES_MAX} bytes")]
    TooLong,
    /// The file is not valid TOML, or has unknown keys.
    #[error("{0}")]
    Malformed(String),
    /// An entry contradicts another one, or the current fleet.
    #[error("{text}")]
    Entry {
        /// Position of the entry.
        place: FleetPosition,
        /// The error, in words.
        text: String,
    },
}

impl Fleet {
    /// Reads a fleet file.
    ///
    /// ```
    /// use forewarn_control::Fleet;
    ///
    /// let fleet = Fleet::parse("host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]").unwrap();
    /// assert_eq!(fleet.vms[0].name, "solo");
    /// assert!(Fleet::parse("hots = []").is_err());
    /// ```
    ///
    /// # Errors
    /// Fails if the text is too long, not TOML, or has an unknown key.
    pub fn parse(text: &str) -> Result<Self, FleetFileError> {
        if text.len() > FLEET_BYTES_MAX {
            return Err(FleetFileError::TooLong);
        }
        toml::from_str(text).map_err(|error| FleetFileError::Malformed(error.to_string()))
    }

    /// Writes a fleet file that [`Self::parse`] reads.
    ///
    /// # Errors
    /// Never fails for a fleet that was read; the encoder returns a `Result`.
    pub fn print(&self) -> Result<String, FleetFileError> {
        toml::to_string(self).map_err(|error| FleetFileError::Malformed(error.to_string()))
    }
}

/// The current fleet of a cluster.
pub fn fleet_of<'a>(
    cluster: &Cluster,
    site: &Site,
    details: impl Fn(MachineId) -> &'a MachineDetails,
) -> Fleet {
    let reader = Reader { cluster, details };
    let mut fleet = Fleet { site: site.clone().into(), ..Fleet::default() };
    for (_, host) in cluster.hosts() {
        fleet.hosts.push(HostEntry { name: host.name.to_string(), zone: host.zone.map(|zone| zone.0) });
    }
    for (_, tenant) in cluster.tenants() {
        match tenant.shape {
            Shape::StandaloneMachine => fleet.vms.extend(reader.vm(tenant)),
            Shape::AvailabilitySet => fleet.availability_sets.push(reader.set(tenant)),
            Shape::CloudService => fleet.cloud_services.push(reader.set(tenant)),
            Shape::PlacementGroup(_) => {}
        }
    }
    fleet.scale_sets.extend(cluster.scale_sets().map(|(_, set)| reader.scale_set(set)));
    fleet
}

struct Reader<'a, F> {
    cluster: &'a Cluster,
    details: F,
}

impl<'b, F: Fn(MachineId) -> &'b MachineDetails> Reader<'_, F> {
    fn vm(&self, tenant: &Tenant) -> Option<VmEntry> {
        let machine = self.machine(*tenant.machines().first()?)?;
        Some(VmEntry {
            name: machine.name,
            host: machine.host,
            update_domain: machine.update_domain,
            fault_domain: machine.fault_domain,
            spot: machine.spot,
            terminate: machine.terminate,
            os_image: machine.os_image,
            policy: tenant.policy.into(),
            addresses: machine.addresses,
            tags: machine.tags,
        })
    }

    fn set(&self, tenant: &Tenant) -> SetEntry {
        let machines = tenant.machines().iter().filter_map(|id| self.machine(*id)).collect();
        SetEntry { name: tenant.name.to_string(), policy: tenant.policy.into(), machines }
    }

    fn machine(&self, id: MachineId) -> Option<MachineEntry> {
        let machine = self.cluster.machine(id)?;
        let (terminate, os_image) = notices(machine.profile);
        let MachineDetails { addresses, tags, home: _ } = (self.details)(id).clone();
        Some(MachineEntry {
            name: machine.name.to_string(),
            host: self.host(machine),
            update_domain: machine.update_domain.0,
            fault_domain: machine.fault_domain.0,
            spot: spot(machine.priority),
            terminate,
            os_image,
            addresses,
            tags,
        })
    }

    fn scale_set(&self, set: &ScaleSet) -> ScaleSetEntry {
        let (terminate, os_image) = notices(set.model);
        let groups = set.groups.iter().filter_map(|group| self.cluster.tenant(*group));
        let mut instances: Vec<_> =
            groups.flat_map(Tenant::machines).filter_map(|id| self.instance(*id, set)).collect();
        instances.sort_by_key(|instance| instance.id);
        ScaleSetEntry {
            name: set.name.to_string(),
            orchestration: set.orchestration.into(),
            upgrade: set.upgrade.into(),
            spot: spot(set.priority),
            terminate,
            os_image,
            policy: set.policy.into(),
            instances,
        }
    }

    fn instance(&self, id: MachineId, set: &ScaleSet) -> Option<InstanceEntry> {
        let machine = self.cluster.machine(id)?;
        let MachineDetails { addresses, tags, home: _ } = (self.details)(id).clone();
        Some(InstanceEntry {
            id: machine.name.instance_number(&set.name),
            host: self.host(machine),
            update_domain: machine.update_domain.0,
            fault_domain: machine.fault_domain.0,
            addresses,
            tags,
        })
    }

    fn host(&self, machine: &Machine) -> String {
        self.cluster.host(machine.host).map(|host| host.name.to_string()).unwrap_or_default()
    }
}
