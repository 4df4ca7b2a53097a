//! What a client is shown: the body that it or another one has sent, overlaid with what the rules know better.
//!
//! ```text
//!   StoredResource ──(what a client said)──┐
//!                                ├──▶ show_machine, show_scale_set, … ──▶ a body
//!   ShowContext ──(how the fleet is)───┘
//! ```
//!
//! Of what no client has sent there is a plain body: a machine of a fleet file is shown as if somebody had asked for it in the
//! simplest way. What may be deleted at any moment is never an error here: of what is not there, only what was kept is shown.

mod availability_set;
mod edit;
mod instance;
mod machine;
mod model;
mod scale_set;
mod standing;
mod view;

use std::collections::BTreeMap;

use forewarn_lifecycle::{Cluster, MachineId, Seed, Timestamp};
use serde_json::{Value, json};

use self::edit::{complete, fill, put, put_if, take};
use super::ApiVersion;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::{Details, Site};
use forewarn_imds::Moment;

pub use availability_set::{plain_availability_set, show_availability_set};
pub use instance::{instance_instance_view, show_instance};
pub use machine::{machine_instance_view, plain_machine, show_flexible_machine, show_machine};
pub use scale_set::{plain_scale_set, scale_set_instance_view, show_scale_set};
pub use standing::{instances_there, is_gone, is_leaving};

/// The first version in which resources have an etag.
const ETAG: ApiVersion = ApiVersion::new(2023, 9, 1);

/// The fleet, as somebody looks at it.
#[derive(Clone, Copy, Debug)]
pub struct ShowContext<'a> {
    /// Its hosts, tenants and machines.
    pub cluster: &'a Cluster,
    /// Where it is.
    pub site: &'a Site,
    /// What is known of its machines besides.
    pub details: &'a BTreeMap<MachineId, Details>,
    /// The identity of the cluster, of which ids are made.
    pub seed: &'a Seed,
    /// When it is looked at.
    pub now: Timestamp,
    /// What whoever looks understands.
    pub version: ApiVersion,
}

/// What is kept of a resource that a client has sent, or a plain body of one that nobody has.
#[derive(Clone, Copy, Debug)]
pub struct StoredResource<'a> {
    /// Where it is, as its client wrote it.
    pub id: &'a ResourceId,
    /// What its client wrote, made canonical.
    pub body: &'a Value,
    /// Counts its changes; 0, if nobody has sent it.
    pub etag: u64,
    /// When it was made, if that is known.
    pub created: Option<Timestamp>,
    /// What is being done to it.
    pub state: Provisioning,
}

/// What a client has sent of an instance itself; the rest of it is made of what is kept of its scale set.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstanceBody<'a> {
    /// What it sent; nothing, if no client has sent anything of it.
    pub body: Option<&'a Value>,
    /// Counts its changes.
    pub etag: u64,
}

/// What is being done to a resource (`provisioningState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provisioning {
    /// Nothing: it is as wanted.
    Succeeded,
    /// It is being made.
    Creating,
    /// It is being changed.
    Updating,
    /// It is going.
    Deleting,
    /// It is not as wanted, and nothing is being done about it.
    Failed,
}

/// What a client wants to see besides (`$expand`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    /// Nothing.
    Nothing,
    /// How it is at the moment.
    InstanceView,
}

impl Provisioning {
    /// As in `provisioningState`.
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
    /// Reads the parameter: words with commas between them. What else may be expanded is always shown.
    ///
    /// ```
    /// use forewarn_azure::Expand;
    /// assert_eq!(Expand::parse("userData,InstanceView"), Expand::InstanceView);
    /// assert_eq!(Expand::parse(""), Expand::Nothing);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(',').map(str::trim);
        // Lists of instances of a scale set know it by another word too.
        let is_view = |word: &str| {
            word.eq_ignore_ascii_case("instanceView") || word.eq_ignore_ascii_case("properties/instanceView")
        };
        if words.any(is_view) { Self::InstanceView } else { Self::Nothing }
    }
}

impl ShowContext<'_> {
    /// The region of a machine of which nobody has said it.
    fn location(&self, machine: MachineId) -> &str {
        let home = self.details.get(&machine).and_then(|details| details.home.as_ref());
        home.map_or(&self.site.location, |home| &home.location)
    }

    /// The zone that a machine is in, as clients write it.
    fn zone(&self, machine: MachineId) -> Option<String> {
        let host = self.cluster.machine(machine)?.host;
        Some(self.cluster.host(host)?.zone?.to_string())
    }

    /// Overlays what the owner of a machine has noted of it.
    fn put_tags(&self, body: &mut Value, machine: MachineId) {
        let tags = self.details.get(&machine).map(|details| &details.tags);
        put_if(body, "tags", tags.filter(|tags| !tags.is_empty()).map(|tags| json!(tags)));
    }
}

/// What a client wrote, after what every resource begins with.
fn resource(context: &ShowContext<'_>, stored: &StoredResource<'_>, kind: &str) -> Value {
    let mut shown = json!({ "name": stored.id.name(), "id": stored.id.to_string(), "type": kind });
    complete(&mut shown, stored.body);
    fill(&mut shown, "location", context.site.location.as_str());
    shown
}

/// What every resource ends with that has a state of its own.
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
