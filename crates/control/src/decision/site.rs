//! Sites: the location and the resource group of a cluster. A resource group belongs to one cluster.

use forewarn_lifecycle::Name;

use super::draft::Draft;
use crate::command::{Site, SiteChange};
use crate::error::ControlError;
use crate::resource_id::GroupId;
use crate::stream::ClusterId;

impl Draft<'_> {
    /// The site of a cluster after a change. A resource group of another cluster is refused.
    pub(super) fn changed_site(
        &self,
        id: ClusterId,
        site: &Site,
        change: &SiteChange,
    ) -> Result<Site, ControlError> {
        let changed = change.apply(site);
        let group = group_of(&changed);
        if group.key() != group_of(site).key() && self.is_taken(id, &group) {
            return Err(ControlError::GroupTaken(group.name));
        }
        Ok(changed)
    }

    /// The site of a new cluster: a resource group with its name, or with a number where that is taken.
    pub(super) fn site_of_new_cluster(&self, cluster: &Name) -> Site {
        let id = self.state.shared().next_cluster();
        let plain = Site::default();
        let usual = format!("{}-{cluster}", plain.resource_group);
        let numbered = (2..=u32::MAX).map(|number| format!("{usual}-{number}"));
        let names = std::iter::once(usual.clone()).chain(numbered);
        let mut sites = names.map(|resource_group| Site { resource_group, ..plain.clone() });
        sites.find(|site| !self.is_taken(id, &group_of(site))).unwrap_or_default()
    }

    /// A group is taken if it is the group of another cluster, or a client has created it there.
    fn is_taken(&self, id: ClusterId, group: &GroupId) -> bool {
        let key = group.key();
        let mut others = self.state.clusters().filter(|(other, _)| *other != id);
        others.any(|(_, cluster)| group_of(cluster.site()).key() == key)
            || self.state.resource(&key).is_some_and(|resource| resource.cluster != id)
    }
}

fn group_of(site: &Site) -> GroupId {
    GroupId { subscription: site.subscription.clone(), name: site.resource_group.clone() }
}
