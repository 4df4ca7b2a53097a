//! Instance metadata: the data of a machine about itself.
//!
//! A tree of strings: numbers and names alike are strings, and missing values are empty strings. Each version has its
//! own set of fields. Inner nodes are rendered as JSON, single values only as text.
//!
//! ```text
//!   Instance ──as of InstanceVersion──▶ tree ──path──▶ node ──Format──▶ body
//! ```

mod path;
mod render;

use std::net::Ipv4Addr;

use forewarn_types::{FaultDomain, Name, UpdateDomain, Zone};

use crate::instance_version::InstanceVersion;
use crate::request_error::RequestError;

/// The default size of a machine; nothing depends on it.
pub const USUAL_SIZE: &str = "Standard_D2s_v5";

/// The metadata of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// As in `Resources` of an event.
    pub name: Name,
    /// Unique among all machines, and never reused.
    pub vm_id: String,
    /// The region.
    pub location: String,
    /// The operating system.
    pub os_type: OsType,
    /// The host name in the operating system.
    pub computer_name: String,
    /// The size.
    pub vm_size: String,
    /// Machines of its tenant that may be in planned work together with it.
    pub update_domain: UpdateDomain,
    /// Machines that fail together with it.
    pub fault_domain: FaultDomain,
    /// The zone, if its host is in one.
    pub zone: Option<Zone>,
    /// `Regular`, or `Spot` if it may be evicted.
    pub priority: &'static str,
    /// `Deallocate` or `Delete` for a spot machine; otherwise empty.
    pub eviction_policy: &'static str,
    /// The subscription it belongs to.
    pub subscription_id: String,
    /// The resource group it belongs to.
    pub resource_group_name: String,
    /// The full id for the management API.
    pub resource_id: String,
    /// Names and values, in the order of the owner.
    pub tags: Vec<(String, String)>,
    /// The scale set, if it is an instance of one.
    pub scale_set: Option<ScaleSetMembership>,
    /// Its network interfaces, the first one first.
    pub interfaces: Vec<Interface>,
}

/// The scale set data of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSetMembership {
    /// The name of the set.
    pub name: String,
    /// The full id of the set for the management API.
    pub id: String,
    /// The placement group that the instance is in.
    pub placement_group_id: String,
}

/// The operating system of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsType {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The hardware address.
    pub mac: [u8; 6],
    /// The address in the virtual network.
    pub private: Ipv4Addr,
    /// The public address, if there is one.
    pub public: Option<Ipv4Addr>,
    /// The first address of the subnet.
    pub subnet: Ipv4Addr,
    /// The bits that all addresses of the subnet share.
    pub subnet_prefix_bits: u8,
}

/// The format of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Compact JSON; for inner nodes only.
    Json,
    /// A plain value, or the names below an inner node, one per line.
    Text,
}

impl OsType {
    /// The value of `osType`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Windows => "Windows",
        }
    }
}

impl Format {
    /// Reads the parameter `format`, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            _ if text.eq_ignore_ascii_case("json") => Some(Self::Json),
            _ if text.eq_ignore_ascii_case("text") => Some(Self::Text),
            _ => None,
        }
    }
}

impl Instance {
    /// Returns true if the path exists in that version.
    #[must_use]
    pub fn has(&self, version: InstanceVersion, path: &str) -> bool {
        path::find(&render::tree(self, version), path).is_some()
    }

    /// The body for the path below `/metadata/instance`: empty, or segments such as `compute/name`, in any case.
    ///
    /// # Errors
    /// [`RequestError::NotFound`] if the path does not exist in that version, [`RequestError::LeafNeedsText`] if it is
    /// a single value and the format is JSON.
    pub fn answer(
        &self,
        version: InstanceVersion,
        path: &str,
        format: Format,
    ) -> Result<String, RequestError> {
        let tree = render::tree(self, version);
        let node = path::find(&tree, path).ok_or(RequestError::NotFound)?;
        path::show(node, format)
    }
}

/// The host name of an instance of a scale set: the prefix of the set and the number of the instance in base 36, with
/// at least six digits.
///
/// ```
/// assert_eq!(forewarn_imds::computer_name("web", 46), "web00001A");
/// ```
#[must_use]
pub fn computer_name(prefix: &str, instance: u32) -> String {
    format!("{prefix}{:0>6}", base_36(instance))
}

fn base_36(number: u32) -> String {
    let last = char::from_digit(number % 36, 36).expect("a remainder of 36 is a digit in base 36");
    let last = last.to_ascii_uppercase();
    if number < 36 { last.to_string() } else { format!("{}{last}", base_36(number / 36)) }
}
