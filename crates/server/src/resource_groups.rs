//! Resource groups of clusters.
//!
//! A resource group belongs to one cluster, and so does every resource in it. Each cluster has a group for its fleet,
//! named by its site; it exists as long as the cluster does. Clients create other groups as resources.

use forewarn_control::ClusterId;
use forewarn_control::Site;
use forewarn_control::resource_id::GroupId;
use forewarn_control::resources::{Leaving, Link, Resource};
use serde_json::{Value, json};

use crate::snapshot::State;

/// A resource group that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// Its id, in the spelling of its creator.
    pub id: GroupId,
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    pub location: String,
    /// It is the group of a cluster's fleet: no client has created it.
    pub is_site: bool,
}

impl ResourceGroup {
    /// The group of a cluster's fleet.
    #[must_use]
    pub fn of_site(cluster: ClusterId, site: &Site) -> Self {
        let id = GroupId { subscription: site.subscription.clone(), name: site.resource_group.clone() };
        Self { id, cluster, location: site.location.clone(), is_site: true }
    }

    /// The group that a resource describes.
    #[must_use]
    pub fn of_entry(entry: &Resource) -> Option<Self> {
        let mut parts = entry.id.split('/').skip(2);
        let (subscription, name) = (parts.next()?.to_owned(), parts.nth(1)?.to_owned());
        let body: Value = serde_json::from_slice(&entry.body.0).unwrap_or_else(|_| json!({}));
        let location = body["location"].as_str().unwrap_or_default().to_owned();
        Some(Self { id: GroupId { subscription, name }, cluster: entry.cluster, location, is_site: false })
    }
}

/// The groups with an id: one, unless several clusters have the same site.
#[must_use]
pub fn groups_with_id(state: &State<'_>, id: &GroupId) -> Vec<ResourceGroup> {
    let key = id.key();
    let entry = state.all.resource(&key);
    let written = entry.filter(|entry| !is_removed(state, entry)).and_then(ResourceGroup::of_entry);
    let others = state.all.clusters();
    let others = others.filter(|(cluster, _)| entry.is_none_or(|entry| entry.cluster != *cluster));
    let sites = others.map(|(cluster, state)| ResourceGroup::of_site(cluster, state.site()));
    written.into_iter().chain(sites.filter(|group| group.id.key() == key)).collect()
}

/// The group with an id in the cluster of this state.
#[must_use]
pub fn group_in_cluster(state: &State<'_>, id: &GroupId) -> Option<ResourceGroup> {
    groups_with_id(state, id).into_iter().find(|group| group.cluster == state.id)
}

/// The group of a machine, tenant or scale set: the one chosen by a client, or that of the cluster's fleet.
#[must_use]
pub fn group_of(state: &State<'_>, link: Link) -> GroupId {
    state.durable.group_of(link)
}

/// An entry that is being removed counts as removed once no operation is open on it.
#[must_use]
pub fn is_removed(state: &State<'_>, entry: &Resource) -> bool {
    entry.leaving == Leaving::Leaves && !state.all.is_operated_on(entry)
}
