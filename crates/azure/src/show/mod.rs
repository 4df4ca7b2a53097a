//! Response bodies: the stored body of a resource, overlaid with the state of the fleet.
//!
//! ```text
//!   StoredResource ──(body of clients)──┐
//!                                       ├──▶ show_machine, show_scale_set, … ──▶ response body
//!   ShowContext ──(state of the fleet)──┘
//! ```
//!
//! A resource that no client has written, like a machine of a fleet file, has a plain body. A resource that was removed
//! meanwhile is not an error here: its stored body is shown.

mod availability_set;
mod edit;
mod instance;
mod machine;
mod model;
mod scale_set;
mod standing;
mod view;

use forewarn_lifecycle::{Cluster, MachineId, Seed, Timestamp};
use serde_json::{Value, json};

use self::edit::{complete, fill, put, put_if, take};
use super::ApiVersion;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::{DetailsTable, Site};
use forewarn_types::Moment;

pub use availability_set::{plain_availability_set, show_availability_set};
pub use instance::{instance_instance_view, show_instance};
pub use machine::{machine_instance_view, plain_machine, show_flexible_machine, show_machine};
pub use scale_set::{plain_scale_set, scale_set_instance_view, show_scale_set};

/// The first version in which resources have an etag.
const ETAG: ApiVersion = ApiVersion::new(2023, 9, 1);

/// State of the fleet, and the api-version of the client.
#[derive(Clone, Copy, Debug)]
pub struct ShowContext<'a> {
    /// Hosts, tenants and machines.
    pub cluster: &'a Cluster,
    /// Site of the cluster.
    pub site: &'a Site,
    pub details: &'a DetailsTable,
    /// Seed of the ids.
    pub seed: &'a Seed,
    pub now: Timestamp,
    /// Version that the client understands.
    pub version: ApiVersion,
}

/// A resource as clients have written it, or with a plain body if none has.
#[derive(Clone, Copy, Debug)]
pub struct StoredResource<'a> {
    /// Its id, in the spelling of its creator.
    pub id: &'a ResourceId,
    pub body: &'a Value,
    /// Number of writes; 0, if no client has written it.
    pub etag: u64,
    /// Creation time, if known.
    pub created: Option<Timestamp>,
    pub state: Provisioning,
}

/// The body that clients have written of an instance itself; the rest follows from its scale set.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstanceBody<'a> {
    /// The body, if a client has written one.
    pub body: Option<&'a Value>,
    pub etag: u64,
}

/// Provisioning state of a resource (`provisioningState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provisioning {
    /// The resource is as wanted.
    Succeeded,
    /// The resource is being created.
    Creating,
    /// The resource is being changed.
    Updating,
    /// The resource is being removed.
    Deleting,
    /// The resource is not as wanted, and no work on it is under way.
    Failed,
}

/// Optional parts of a response (`$expand`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    Nothing,
    InstanceView,
}

impl Provisioning {
    /// The word of `provisioningState`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }
}

impl Expand {
    /// Parses the parameter: words with commas between them. Other parts are always shown.
    ///
    /// ```
    /// use forewarn_azure::Expand;
    /// assert_eq!(Expand::parse("userData,InstanceView"), Expand::InstanceView);
    /// assert_eq!(Expand::parse(""), Expand::Nothing);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(',').map(str::trim);
        // Lists of instances of a scale set use another word too.
        let is_view = |word: &str| {
            word.eq_ignore_ascii_case("instanceView") || word.eq_ignore_ascii_case("properties/instanceView")
        };
        if words.any(is_view) { Self::InstanceView } else { Self::Nothing }
    }
}

impl ShowContext<'_> {
    /// Location of a machine whose body has none.
    fn location(&self, machine: MachineId) -> &str {
        let home = self.details.get(&machine).and_then(|details| details.home.as_ref());
        home.map_or(&self.site.location, |home| &home.location)
    }

    /// Zone of a machine, as clients write it.
    fn zone(&self, machine: MachineId) -> Option<String> {
        let host = self.cluster.machine(machine)?.host;
        Some(self.cluster.host(host)?.zone?.to_string())
    }

    /// Overlays the tags of a machine.
    fn put_tags(&self, body: &mut Value, machine: MachineId) {
        let tags = self.details.get(&machine).map(|details| &details.tags);
        put_if(body, "tags", tags.filter(|tags| !tags.is_empty()).map(|tags| json!(tags)));
    }
}

/// The stored body, after the members that every resource begins with.
fn resource(context: &ShowContext<'_>, stored: &StoredResource<'_>, kind: &str) -> Value {
    let mut shown = json!({ "name": stored.id.name(), "id": stored.id.to_string(), "type": kind });
    complete(&mut shown, stored.body);
    fill(&mut shown, "location", context.site.location.as_str());
    shown
}

/// Adds the provisioning state, the creation time and the etag.
fn put_state(context: &ShowContext<'_>, stored: &StoredResource<'_>, state: Provisioning, shown: &mut Value) {
    put(shown, "properties.provisioningState", state.as_str());
    put_if(shown, "properties.timeCreated", stored.created.map(|when| Moment(when).to_string()));
    put_etag(context, stored.etag, shown);
}

fn put_etag(context: &ShowContext<'_>, etag: u64, shown: &mut Value) {
    take(shown, "etag");
    if context.version >= ETAG {
        put(shown, "etag", format!("\"{etag}\""));
    }
}
