//! Subscriptions and resource groups of a request: the clusters that have them, within the permit.

use std::collections::BTreeMap;

use forewarn_control::ClusterId;
use forewarn_control::Permit;
use forewarn_control::Site;
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_server::State;
use forewarn_server::{ControlHandle, ResourceGroup, groups_with_id, is_removed};

use super::ArmContext;
use super::request::ArmRequest;
use crate::{ArmError, same_location};

impl ArmContext {
    /// The resource group of a request, and a handle to its cluster.
    pub(crate) async fn group(
        &self,
        request: &ArmRequest,
        (subscription, name): (&str, &str),
    ) -> Result<(ResourceGroup, ControlHandle), ArmError> {
        let wanted = GroupId { subscription: subscription.to_owned(), name: name.to_owned() };
        let permit = std::sync::Arc::clone(&request.permit);
        let look = move |state: &State<'_>| {
            check_subscription(state, &permit, &wanted.subscription)?;
            find_group(state, &permit, &wanted)?.ok_or_else(|| no_group(&wanted.name))
        };
        let group = self.control.look(look).map_err(|problem| super::errors::of_problem(&problem))??;
        let control = self.control.of(group.cluster);
        Ok((group, control))
    }
}

/// The group with an id within the permit.
pub(crate) fn find_group(
    state: &State<'_>,
    permit: &Permit,
    id: &GroupId,
) -> Result<Option<ResourceGroup>, ArmError> {
    let mut groups = groups_with_id(state, id);
    groups.retain(|group| permit.reaches(group.cluster));
    if groups.len() > 1 {
        return Err(ambiguous(state, &id.name, &groups));
    }
    Ok(groups.pop())
}

/// Key prefix of the groups of a subscription.
pub(crate) fn groups_prefix(subscription: &str) -> String {
    format!("/subscriptions/{}/resourcegroups/", subscription.to_lowercase())
}

/// Groups of a subscription within the permit, by key, from a key on: `max` of them, if there are so many. Further ones
/// and the resources in groups cost nothing.
pub(crate) fn groups_of(
    state: &State<'_>,
    permit: &Permit,
    (subscription, from): (&str, &str),
    max: usize,
) -> Vec<(String, ResourceGroup)> {
    let entries = state.all.resources_directly_below(&groups_prefix(subscription), from);
    let own = entries.filter(|(_, entry)| permit.reaches(entry.cluster) && !is_removed(state, entry));
    let own = own.filter_map(|(key, entry)| Some((key.to_owned(), ResourceGroup::of_entry(entry)?)));
    let mut groups: BTreeMap<_, _> = own.take(max).collect();
    for (cluster, site) in clusters_of(state, permit, subscription) {
        let group = ResourceGroup::of_site(cluster, site);
        let key = group.id.key();
        if key.as_str() >= from {
            groups.entry(key).or_insert(group);
        }
    }
    groups.into_iter().take(max).collect()
}

/// The cluster for a new group: that of the location, or else the first.
pub(crate) fn cluster_for(
    state: &State<'_>,
    permit: &Permit,
    subscription: &str,
    location: &str,
) -> Option<ClusterId> {
    let mut of = clusters_of(state, permit, subscription).peekable();
    let first = of.peek().map(|(id, _)| *id);
    of.find(|(_, site)| same_location(&site.location, location)).map(|(id, _)| id).or(first)
}

/// The clusters of a subscription within the permit.
pub(crate) fn clusters_of<'a>(
    state: &'a State<'_>,
    permit: &Permit,
    subscription: &str,
) -> impl Iterator<Item = (ClusterId, &'a Site)> {
    let reached = state.all.clusters().filter(|(id, _)| permit.reaches(*id));
    let sites = reached.map(|(id, other)| (id, other.site()));
    sites.filter(|(_, site)| site.subscription.eq_ignore_ascii_case(subscription))
}

/// Checks that a subscription exists within the permit.
pub(crate) fn check_subscription(state: &State<'_>, permit: &Permit, id: &str) -> Result<(), ArmError> {
    if clusters_of(state, permit, id).next().is_some() {
        return Ok(());
    }
    let message = format!("The subscription '{id}' could not be found.");
    Err(ArmError::new(404, "SubscriptionNotFound", message))
}

/// A group id that several clusters have: the server does not guess.
fn ambiguous(state: &State<'_>, name: &str, groups: &[ResourceGroup]) -> ArmError {
    let clusters = groups.iter().filter_map(|group| state.shared.cluster_name(group.cluster));
    let clusters: Vec<_> = clusters.map(ToString::to_string).collect();
    let message = format!(
        "Resource group '{name}' is in several clusters: {}. Give all but one another site ([site] of a fleet file), or \
         use a token that is limited to one of them.",
        clusters.join(", ")
    );
    ArmError::new(409, "AmbiguousResourceGroup", message)
}

pub(crate) fn no_group(name: &str) -> ArmError {
    ArmError::new(404, "ResourceGroupNotFound", format!("Resource group '{name}' could not be found."))
}

pub(crate) fn no_resource(id: &ResourceId) -> ArmError {
    let kind = id.kind();
    let names: Vec<_> = id.parts.iter().map(|(_, name)| name.as_str()).collect();
    let message = format!(
        "The Resource '{kind}/{}' under resource group '{}' was not found. For more details please go to \
         https://aka.ms/ARMResourceNotFoundFix",
        names.join("/"),
        id.group.name
    );
    ArmError::new(404, "ResourceNotFound", message)
}
