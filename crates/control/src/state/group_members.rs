//! Members of resource groups: the machines, availability sets and scale sets whose group a client has chosen.
//!
//! All others are in the group of the cluster's site, and in no index: a change of the site changes no entry here.

use super::ClusterState;
use super::member_index::GroupHash;
use crate::resource_id::{GroupId, ResourceId};
use crate::resources::{Link, ResourceChange};

impl ClusterState {
    /// The resource group of a machine, tenant or scale set: the one chosen by a client, or that of the site.
    #[must_use]
    pub fn group_of(&self, link: Link) -> GroupId {
        self.chosen_group(link).unwrap_or_else(|| GroupId::of_site(&self.site))
    }

    /// The objects of the kind of `first`, from it on and by number, for which a client has chosen a group. Objects of
    /// other groups cost nothing.
    pub fn chosen_members<'a>(
        &'a self,
        group: &GroupId,
        first: Link,
    ) -> impl Iterator<Item = Link> + use<'a> {
        let key = group.key();
        let candidates = self.members.candidates(GroupHash::of(group), first);
        candidates.filter(move |link| self.group_of(*link).key() == key)
    }

    fn chosen_group(&self, link: Link) -> Option<GroupId> {
        let home = match link {
            Link::Machine(machine) => self.details_of(machine).home.as_ref(),
            Link::Tenant(_) | Link::ScaleSet(_) => None,
        };
        if let Some(home) = home {
            let (subscription, name) = (self.site.subscription.clone(), home.resource_group.clone());
            return Some(GroupId { subscription, name });
        }
        let (_, resource) = self.resources.linked(link)?;
        Some(ResourceId::parse(&resource.id)?.group)
    }

    fn hash_of_group(&self, link: Link) -> Option<GroupHash> {
        self.chosen_group(link).map(|group| GroupHash::of(&group))
    }

    /// Changes something that may change the groups of these objects, and lists them in their new groups.
    pub(super) fn regroup<T>(&mut self, links: &[Link], change: impl FnOnce(&mut Self) -> T) -> T {
        let before: Vec<_> = links.iter().map(|link| self.hash_of_group(*link)).collect();
        let changed = change(self);
        for (link, before) in links.iter().zip(before) {
            let after = self.hash_of_group(*link);
            self.members.set(*link, before, after);
        }
        changed
    }

    /// The objects whose group a change of the resources may change.
    pub(super) fn links_changed_by(&self, change: &ResourceChange) -> Vec<Link> {
        let (key, new) = match change {
            ResourceChange::Put(resource) => (resource.key(), resource.link),
            ResourceChange::Removed(key) => (key.clone(), None),
            ResourceChange::Marked { .. } | ResourceChange::Opened(_) | ResourceChange::WorkEnded { .. } => {
                return Vec::new();
            }
        };
        let former = self.resources.get(&key).and_then(|resource| resource.link);
        former.filter(|former| Some(*former) != new).into_iter().chain(new).collect()
    }

    /// Lists the members of all groups.
    pub(super) fn list_members(&mut self) {
        let described = self.details.iter().map(|(machine, _)| Link::Machine(machine));
        let links = described.chain(self.resources.links());
        self.members = links.filter_map(|link| Some((self.hash_of_group(link)?, link))).collect();
    }
}
