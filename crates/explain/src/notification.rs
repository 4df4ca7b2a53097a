//! The usual troubles with the notice of a deletion, and what is behind them.
//!
//! | trouble | what is behind it |
//! |---|---|
//! | enabling it is refused | an api-version that does not know it |
//! | nobody saw a Terminate event | an edition that does not show it, a tenant that is not enrolled, a model without a notice |
//! | `NotBefore` is not the one expected | an instance that runs an older model |

use std::collections::BTreeMap;

use forewarn_control::resource_id::{GroupId, ResourceId, instance_word, machine_id, scale_set_id};
use forewarn_control::view::deletion::{length, older_model, scale_set_of};
use forewarn_control::view::wording::few;
use forewarn_imds::Edition;
use forewarn_lifecycle::{EventKind, Machine, MachineId, Priority, ScaleSet, Shape, Tenant};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PollView, Scene};

/// Groups of instances that run the same older model, of which it is told.
const MODELS_MAX: usize = 8;

/// Instances that a command names one by one; where there are more, it names all.
const NAMED_MAX: usize = 4;

/// How clients of Azure know what is in a cluster, and what they were refused.
#[derive(Clone, Copy)]
pub struct Azure<'a> {
    /// The resource group in which something is.
    pub group_of: &'a dyn Fn(Resource) -> GroupId,
    /// Requests to change something in this cluster that were refused: of each resource the newest.
    pub refusals: &'a [RefusedView],
}

/// Something in the rules that is a resource for clients of Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A machine.
    Machine(MachineId),
    /// A scale set.
    ScaleSet(forewarn_lifecycle::ScaleSetId),
}

/// A request of a client of Azure that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedView {
    /// When.
    pub at: Moment,
    /// Whose it was: `token NAME`, `socket`, `anyone`.
    pub by: String,
    /// `PUT`, `PATCH`, `POST`, `DELETE`.
    pub method: String,
    /// The id of the resource.
    pub resource: String,
    /// The api-version of the request, as it was written; nothing, if it had none.
    pub api_version: Option<String>,
    /// What it was refused with, for programs.
    pub code: String,
    /// What it was refused with, for people.
    pub message: String,
    /// The member of the body that the api-version of the request does not know, if it was refused for that.
    #[serde(skip)]
    pub unknown_member: Option<UnknownMember>,
}

/// A member of a body, and the first api-version that knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMember {
    /// Name of the member.
    pub member: String,
    /// The api-version.
    pub since: String,
}

impl RefusedView {
    /// What is behind it, if that is one of the usual troubles.
    fn cause(&self) -> Option<String> {
        let id = ResourceId::parse(&self.resource)?;
        let UnknownMember { member, since } = self.unknown_member.as_ref()?;
        let (method, name, version) =
            (&self.method, id.name(), self.api_version.as_deref().unwrap_or("none"));
        Some(format!(
            "a {method} of {name} was refused ({}): api-version {version} does not know {member}, {since} and newer do",
            self.code
        ))
    }
}

/// What is behind requests that were refused.
pub(crate) fn causes(refused: &[RefusedView]) -> impl Iterator<Item = String> + '_ {
    refused.iter().filter_map(RefusedView::cause)
}

impl Scene<'_> {
    /// What was refused of these, the newest first.
    pub(crate) fn refused(&self, resources: impl IntoIterator<Item = Resource>) -> Vec<RefusedView> {
        let id = |resource: Resource| {
            let group = (self.azure.group_of)(resource);
            match resource {
                Resource::Machine(machine) => machine_id(self.cluster, &group, machine),
                Resource::ScaleSet(set) => Some(scale_set_id(&group, &self.cluster.scale_set(set)?.name)),
            }
        };
        let keys: Vec<_> = resources.into_iter().filter_map(id).map(|id| id.key()).collect();
        self.refused_if(|refused| keys.contains(&refused.key()))
    }

    /// What was refused of resources, the newest first.
    pub(crate) fn refused_if(&self, is_wanted: impl Fn(&ResourceId) -> bool) -> Vec<RefusedView> {
        let is_wanted =
            |refused: &&RefusedView| ResourceId::parse(&refused.resource).is_some_and(|id| is_wanted(&id));
        let mut all: Vec<_> = self.azure.refusals.iter().filter(is_wanted).cloned().collect();
        all.sort_by_key(|refused| std::cmp::Reverse(refused.at.0));
        all
    }

    /// A machine as clients of Azure know it, and the scale set that it is an instance of.
    pub(crate) fn resources_of(&self, id: MachineId, tenant: &Tenant) -> Vec<Resource> {
        [Resource::Machine(id)].into_iter().chain(set_of(tenant)).collect()
    }

    /// Instances of a scale set that run an older model than it has, those of one model together.
    pub(crate) fn older_models(&self, machines: impl IntoIterator<Item = MachineId>) -> Vec<String> {
        let mut groups: BTreeMap<_, Vec<&Machine>> = BTreeMap::new();
        for machine in machines.into_iter().filter_map(|id| self.cluster.machine(id)) {
            if let Some(model) = older_model(self.cluster, machine) {
                groups.entry((machine.model_version, model)).or_default().push(machine);
            }
        }
        let groups = groups.into_iter().take(MODELS_MAX);
        groups.filter_map(|((_, model), machines)| self.older_model(&model, &machines)).collect()
    }

    fn older_model(&self, model: &str, machines: &[&Machine]) -> Option<String> {
        let first = machines.first()?;
        let set = scale_set_of(self.cluster, first)?;
        let (whose, run) = if machines.len() == 1 { ("instance", "runs") } else { ("instances", "run") };
        let latest = if set.model.terminate == first.profile.terminate {
            format!(", as model {} has", set.model_version)
        } else {
            format!(", where model {} has {}", set.model_version, length(set.model.terminate))
        };
        let upgrade = match set.next_batch() {
            Some(at) => format!("instances get it batch by batch, the next at {}", Moment(at.wall)),
            None => format!("upgrade: {}", self.upgrade(set, machines)?),
        };
        Some(format!("{whose} {} {run} {model}{latest}; {upgrade}", few(&names(machines))))
    }

    /// How instances get the latest model.
    fn upgrade(&self, set: &ScaleSet, machines: &[&Machine]) -> Option<String> {
        let group = self.group_of(set)?;
        let (those, ids) = if machines.len() > NAMED_MAX {
            ("--all".to_owned(), "'*'".to_owned())
        } else {
            let ids: Vec<_> = machines.iter().map(|machine| instance_word(set, machine)).collect();
            (names(machines).join(" "), ids.join(" "))
        };
        let name = &set.name;
        Some(format!(
            "`forewarn scaleset upgrade {name} {those}`, or `az vmss update-instances --resource-group {group} --name {name} --instance-ids {ids}`"
        ))
    }

    /// The name of the resource group that a scale set is in.
    pub(crate) fn group_of(&self, set: &ScaleSet) -> Option<String> {
        let id = self.cluster.scale_set_named(set.name.as_str())?;
        Some((self.azure.group_of)(Resource::ScaleSet(id)).name)
    }

    /// That a tenant is not told of anything.
    pub(crate) fn not_enrolled(&self, tenant: &Tenant) -> Option<String> {
        (!tenant.is_enrolled()).then(|| {
            format!(
                "tenant {} is not enrolled: what is done to its machines happens unannounced, until one of them asks for events",
                tenant.name
            )
        })
    }

    /// That a machine is not told of its deletion, whichever model its scale set has.
    pub(crate) fn no_notice(&self, machine: &Machine) -> Option<String> {
        if machine.profile.terminate.is_some() {
            return None;
        }
        match machine.priority {
            Priority::Spot(_) => Some(
                "it is a spot machine, and those have no notice of deletion: a delete makes no Terminate event"
                    .to_owned(),
            ),
            // What the latest model has is told with the model that it runs.
            Priority::Regular if older_model(self.cluster, machine).is_some() => None,
            Priority::Regular => {
                Some("it has no notice of deletion: a delete makes no Terminate event".to_owned())
            }
        }
    }
}

/// The scale set of a tenant, if it is a group of one.
pub(crate) fn set_of(tenant: &Tenant) -> Option<Resource> {
    match tenant.shape {
        Shape::PlacementGroup(set) => Some(Resource::ScaleSet(set)),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    }
}

/// Machines that ask in an edition in which such events are not shown, those of one edition together.
pub(crate) fn blind(polls: &[PollView], what: EventKind) -> Vec<String> {
    let mut editions: BTreeMap<Edition, Vec<String>> = BTreeMap::new();
    for poll in polls {
        let edition = poll.edition.as_deref().and_then(Edition::parse);
        if let Some(edition) = edition.filter(|edition| !edition.knows(what)) {
            editions.entry(edition).or_default().push(poll.machine.clone());
        }
    }
    let since = Edition::ALL.into_iter().find(|edition| edition.knows(what)).unwrap_or(Edition::newest());
    let says = |(edition, machines): (Edition, Vec<String>)| {
        let (whose, ask) = if machines.len() == 1 { ("machine", "asks") } else { ("machines", "ask") };
        format!(
            "{whose} {} {ask} with api-version {}, which does not show {}: {} does",
            few(&machines),
            edition.as_str(),
            what.as_str(),
            since.as_str()
        )
    };
    editions.into_iter().map(says).collect()
}

fn names(machines: &[&Machine]) -> Vec<String> {
    machines.iter().map(|machine| machine.name.to_string()).collect()
}
