//! Where something is: which cluster has a subscription, and which a resource group.
//!
//! A resource group is in one cluster, and so is everything in it. Each cluster has one of its own besides, in which its fleet
//! is: the one that its machines are told of. It is there as long as the cluster is, and nobody has to create it.

use forewarn_azure::{ArmError, same_location};
use forewarn_control::Site;
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::shared::{ClusterId, Entry};
use serde_json::{Value, json};

use super::Arm;
use super::call::Call;
use crate::engine::{Engine, State};
use crate::operator::Permit;

/// A resource group that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its id, spelled as whoever made it did.
    pub(crate) id: GroupId,
    pub(crate) cluster: ClusterId,
    pub(crate) location: String,
    /// Where its fleet is, without anybody having said so.
    pub(crate) is_site: bool,
}

impl Arm {
    /// The resource group of a request, and a handle to its cluster.
    pub(crate) async fn group(
        &self,
        call: &Call,
        (subscription, name): (&str, &str),
    ) -> Result<(Group, Engine), ArmError> {
        let wanted = GroupId { subscription: subscription.to_owned(), name: name.to_owned() };
        let permit = std::sync::Arc::clone(&call.permit);
        let look = move |state: &State<'_>| {
            check_subscription(state, &permit, &wanted.subscription)?;
            find_group(state, &permit, &wanted)?.ok_or_else(|| no_group(&wanted.name))
        };
        let group = self.engine.look(look).await.map_err(|problem| super::refusal::of(&problem))??;
        let engine = self.engine.of(group.cluster);
        Ok((group, engine))
    }
}

/// The group of that id, of those that whoever asks may know of.
pub(crate) fn find_group(
    state: &State<'_>,
    permit: &Permit,
    id: &GroupId,
) -> Result<Option<Group>, ArmError> {
    let mut groups = groups_called(state, id);
    groups.retain(|group| permit.reaches(group.cluster));
    if groups.len() > 1 {
        return Err(ambiguous(state, &id.name, &groups));
    }
    Ok(groups.pop())
}

/// The groups of that id: one, unless clusters have come to be in the same.
pub(crate) fn groups_called(state: &State<'_>, id: &GroupId) -> Vec<Group> {
    let key = id.key();
    let entry = state.catalogue.entry(&key);
    let written = entry.filter(|entry| !is_gone(state, entry)).and_then(of_entry);
    let others = state.all.iter().filter(|(cluster, _)| entry.is_none_or(|entry| entry.cluster != **cluster));
    let sites = others.map(|(cluster, estate)| of_site(*cluster, &estate.site));
    written.into_iter().chain(sites.filter(|group| group.id.key() == key)).collect()
}

/// The group of that id in this cluster.
pub(crate) fn group_here(state: &State<'_>, id: &GroupId) -> Option<Group> {
    groups_called(state, id).into_iter().find(|group| group.cluster == state.id)
}

/// Every group of a subscription, in the order of their names.
pub(crate) fn groups_of(state: &State<'_>, permit: &Permit, subscription: &str) -> Vec<Group> {
    let prefix = format!("/subscriptions/{}/resourcegroups/", subscription.to_lowercase());
    let entries = state.catalogue.entries_below(&prefix);
    let own = entries.filter(|(key, entry)| !key[prefix.len()..].contains('/') && !is_gone(state, entry));
    let own = own.filter_map(|(_, entry)| of_entry(entry));
    let mut groups: Vec<_> = own.filter(|group| permit.reaches(group.cluster)).collect();
    for (cluster, estate) in state.all.iter().filter(|(cluster, _)| permit.reaches(**cluster)) {
        let group = of_site(*cluster, &estate.site);
        let is_new = |group: &Group| groups.iter().all(|known| known.id.key() != group.id.key());
        if estate.site.subscription.eq_ignore_ascii_case(subscription) && is_new(&group) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|group| group.id.key());
    groups
}

/// The cluster in which a new group is made: that of the location, or else the first.
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

/// The clusters of a subscription that whoever asks may know of.
pub(crate) fn clusters_of<'a>(
    state: &'a State<'_>,
    permit: &Permit,
    subscription: &str,
) -> impl Iterator<Item = (ClusterId, &'a Site)> {
    let reached = state.all.iter().filter(|(id, _)| permit.reaches(**id));
    let of = reached.filter(|(_, estate)| estate.site.subscription.eq_ignore_ascii_case(subscription));
    of.map(|(id, estate)| (*id, &estate.site))
}

/// Whether there is such a subscription, as far as whoever asks may know.
pub(crate) fn check_subscription(state: &State<'_>, permit: &Permit, id: &str) -> Result<(), ArmError> {
    if clusters_of(state, permit, id).next().is_some() {
        return Ok(());
    }
    let message = format!("The subscription '{id}' could not be found.");
    Err(ArmError::new(404, "SubscriptionNotFound", message))
}

/// Names belong to one cluster, and so do ids: nobody guesses which is meant.
fn ambiguous(state: &State<'_>, name: &str, groups: &[Group]) -> ArmError {
    let clusters = groups.iter().filter_map(|group| state.catalogue.cluster_name(group.cluster));
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

/// Something that goes is gone once nobody waits for it any more.
pub(crate) fn is_gone(state: &State<'_>, entry: &Entry) -> bool {
    entry.leaving == forewarn_control::shared::Leaving::Leaves
        && !state.catalogue.is_operated_on(&entry.key())
}

fn of_site(cluster: ClusterId, site: &Site) -> Group {
    let id = GroupId { subscription: site.subscription.clone(), name: site.resource_group.clone() };
    Group { id, cluster, location: site.location.clone(), is_site: true }
}

fn of_entry(entry: &Entry) -> Option<Group> {
    let mut parts = entry.id.split('/').skip(2);
    let (subscription, name) = (parts.next()?.to_owned(), parts.nth(1)?.to_owned());
    let body: Value = serde_json::from_slice(&entry.body.0).unwrap_or_else(|_| json!({}));
    let location = body["location"].as_str().unwrap_or_default().to_owned();
    Some(Group { id: GroupId { subscription, name }, cluster: entry.cluster, location, is_site: false })
}
