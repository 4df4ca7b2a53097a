//! The fleet file: the wanted hosts and tenants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::enrolment::EnrolmentWord;
use crate::command::entry::{HostEntry, ScaleSetEntry, SetEntry, VmEntry};
use crate::command::named::SiteChange;
use crate::fleet_file::position::FleetPosition;

/// Bytes of a fleet in one request. Files on disk have no limit: larger ones are applied in pieces.
pub const FLEET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A fleet: hosts and tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The time at which tenants are enrolled. If absent, it keeps its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolment: Option<EnrolmentWord>,
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
    /// Writes a fleet file that [`Self::parse`] reads.
    ///
    /// # Errors
    /// Never fails for a fleet that was read; the encoder returns a `Result`.
    pub fn print(&self) -> Result<String, FleetFileError> {
        toml::to_string(self).map_err(|error| FleetFileError::Malformed(error.to_string()))
    }
}
