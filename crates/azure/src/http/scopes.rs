//! Subscriptions and resource groups of a request: the clusters that have them, within the permit.

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

/// The groups of a subscription within the permit, in the order of their names.
pub(crate) fn groups_of(state: &State<'_>, permit: &Permit, subscription: &str) -> Vec<ResourceGroup> {
    let prefix = format!("/subscriptions/{}/resourcegroups/", subscription.to_lowercase());
    let entries = state.all.resources_below(&prefix);
    let own = entries.filter(|(key, entry)| !key[prefix.len()..].contains('/') && !is_removed(state, entry));
    let own = own.filter_map(|(_, entry)| ResourceGroup::of_entry(entry));
    let mut groups: Vec<_> = own.filter(|group| permit.reaches(group.cluster)).collect();
    for (cluster, other) in state.all.clusters().filter(|(cluster, _)| permit.reaches(*cluster)) {
        let group = ResourceGroup::of_site(cluster, other.site());
        let is_new = |group: &ResourceGroup| groups.iter().all(|known| known.id.key() != group.id.key());
        if other.site().subscription.eq_ignore_ascii_case(subscription) && is_new(&group) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|group| group.id.key());
    groups
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
