//! Common problems with the notice of a deletion, and their causes.
//!
//! | problem | cause |
//! |---|---|
//! | enabling the notice is refused | an api-version that does not have the member |
//! | no machine saw a Terminate event | an api-version without it, a tenant that is not enrolled, a model without a notice |
//! | unexpected `NotBefore` | an instance that runs an older model |

use std::collections::BTreeMap;

use forewarn_control::resource_id::{GroupId, ResourceId, instance_word, machine_id, scale_set_id};
use forewarn_control::view::deletion::{length, older_model, scale_set_of};
use forewarn_control::view::describe::join_names;
use forewarn_imds::Edition;
use forewarn_lifecycle::{EventKind, Machine, MachineId, Priority, ScaleSet, Shape, Tenant, Unenrolled};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExplanationContext, PollView};

/// Maximum number of older models in the hints.
const MODELS_MAX: usize = 8;

/// Maximum number of instances that a suggested command names; beyond it, the command names all.
const NAMED_MAX: usize = 4;

/// The cluster as Azure clients know it, and their refused requests.
#[derive(Clone, Copy)]
pub struct AzureContext<'a> {
    /// The resource group of a resource.
    pub group_of: &'a dyn Fn(Resource) -> GroupId,
    /// Refused requests about this cluster: the newest of each resource.
    pub refusals: &'a [RefusedView],
}

/// An object of the rules that is a resource for Azure clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Machine(MachineId),
    ScaleSet(forewarn_lifecycle::ScaleSetId),
}

/// A refused request of an Azure client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedView {
    /// Time of the request.
    pub at: Moment,
    /// The caller: `token NAME`, `socket`, `anyone`.
    pub by: String,
    /// `PUT`, `PATCH`, `POST`, `DELETE`.
    pub method: String,
    /// Id of the resource.
    pub resource: String,
    /// Api-version of the request, as it was written; null if it had none.
    pub api_version: Option<String>,
    /// Error code, for programs.
    pub code: String,
    /// Error message, for people.
    pub message: String,
    /// The member of the body that the api-version does not have, if that is the reason.
    #[serde(skip)]
    pub unknown_member: Option<UnknownMember>,
}

/// A member of a body, and the first api-version that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMember {
    /// Name of the member.
    pub member: String,
    pub since: String,
}

impl RefusedView {
    /// The cause, if it is a common problem.
    fn cause(&self) -> Option<String> {
        let id = ResourceId::parse(&self.resource)?;
        let UnknownMember { member, since } = self.unknown_member.as_ref()?;
        let (method, name, version) =
            (&self.method, id.name(), self.api_version.as_deref().unwrap_or("none"));
        Some(format!(
            "a {method} of {name} was refused ({}): api-version {version} does not have {member}, {since} and newer do",
            self.code
        ))
    }
}

/// The causes of refused requests.
pub(crate) fn causes(refused: &[RefusedView]) -> impl Iterator<Item = String> + '_ {
    refused.iter().filter_map(RefusedView::cause)
}

impl ExplanationContext<'_> {
    /// Refused requests about these resources, the newest first.
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

    /// Refused requests about the resources that match, the newest first.
    pub(crate) fn refused_if(&self, is_wanted: impl Fn(&ResourceId) -> bool) -> Vec<RefusedView> {
        let is_wanted =
            |refused: &&RefusedView| ResourceId::parse(&refused.resource).is_some_and(|id| is_wanted(&id));
        let mut all: Vec<_> = self.azure.refusals.iter().filter(is_wanted).cloned().collect();
        all.sort_by_key(|refused| std::cmp::Reverse(refused.at.0));
        all
    }

    /// A machine as a resource, and its scale set.
    pub(crate) fn resources_of(&self, id: MachineId, tenant: &Tenant) -> Vec<Resource> {
        [Resource::Machine(id)].into_iter().chain(set_of(tenant)).collect()
    }

    /// Hints about instances that run older models, grouped by model.
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
        let (noun, verb) = if machines.len() == 1 { ("instance", "runs") } else { ("instances", "run") };
        let latest = if set.model.terminate == first.profile.terminate {
            format!(", as model {} has", set.model_version)
        } else {
            format!(", where model {} has {}", set.model_version, length(set.model.terminate))
        };
        let upgrade = match set.next_batch() {
            Some(at) => format!("instances get it batch by batch, the next at {}", Moment(at.wall)),
            None => format!("upgrade: {}", self.upgrade(set, machines)?),
        };
        Some(format!("{noun} {} {verb} {model}{latest}; {upgrade}", join_names(&names(machines))))
    }

    /// Commands that upgrade instances to the latest model.
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

    /// Name of the resource group of a scale set.
    pub(crate) fn group_of(&self, set: &ScaleSet) -> Option<String> {
        let id = self.cluster.scale_set_named(set.name.as_str())?;
        Some((self.azure.group_of)(Resource::ScaleSet(id)).name)
    }

    /// Hint about a tenant that is not enrolled.
    pub(crate) fn not_enrolled(&self, tenant: &Tenant) -> Option<String> {
        let waits = match self.cluster.settings().unenrolled {
            Unenrolled::RunAtOnce => "",
            Unenrolled::WaitAnyway => "; work on them waits as long as a notice, without an event",
        };
        (!tenant.is_enrolled()).then(|| {
            format!(
                "tenant {} is not enrolled: its machines get no notice of events until one of them polls{waits}",
                tenant.name
            )
        })
    }

    /// Hint about a machine without notice of deletion, independent of the model of its scale set.
    pub(crate) fn no_notice(&self, machine: &Machine) -> Option<String> {
        if machine.profile.terminate.is_some() {
            return None;
        }
        match machine.priority {
            Priority::Spot(_) => Some(
                "spot machines have no notice of deletion: a delete causes no Terminate event".to_owned(),
            ),
            // The hint about its older model covers this.
            Priority::Regular if older_model(self.cluster, machine).is_some() => None,
            Priority::Regular => {
                Some("it has no notice of deletion: a delete causes no Terminate event".to_owned())
            }
        }
    }
}

/// The scale set of a tenant, if the tenant is a placement group.
pub(crate) fn set_of(tenant: &Tenant) -> Option<Resource> {
    match tenant.shape {
        Shape::PlacementGroup(set) => Some(Resource::ScaleSet(set)),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    }
}

/// Hints about machines that poll with an api-version without such events, grouped by api-version.
pub(crate) fn outdated_versions(polls: &[PollView], what: EventKind) -> Vec<String> {
    let mut editions: BTreeMap<Edition, Vec<String>> = BTreeMap::new();
    for poll in polls {
        let edition = poll.edition.as_deref().and_then(Edition::parse);
        if let Some(edition) = edition.filter(|edition| !edition.knows(what)) {
            editions.entry(edition).or_default().push(poll.machine.clone());
        }
    }
    let since = Edition::ALL.into_iter().find(|edition| edition.knows(what)).unwrap_or(Edition::newest());
    let says = |(edition, machines): (Edition, Vec<String>)| {
        let (noun, verb) = if machines.len() == 1 { ("machine", "polls") } else { ("machines", "poll") };
        format!(
            "{noun} {} {verb} with api-version {}, which does not include {} events: {} does",
            join_names(&machines),
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
