//! Where clusters are: a resource group is in one of them, so no two have the same.

use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::ClusterId;
use forewarn_control::{Site, SiteChange};
use forewarn_lifecycle::Now;
use forewarn_store::{Entry, Record};

use super::Driver;
use crate::engine::Problem;

impl Driver {
    /// Where a cluster is after a change. A group that is another cluster's is refused.
    pub(super) fn other_site(&self, id: ClusterId, was: &Site, change: &SiteChange) -> Result<Site, Problem> {
        let site = change.apply(was);
        let group = group_of(&site);
        if group.key() != group_of(was).key() && self.is_taken(id, &group) {
            return Err(Problem::GroupTaken(group.name));
        }
        Ok(site)
    }

    /// A new cluster has a group of its own, that is called like it.
    pub(super) fn found_site(&mut self, now: Now, id: ClusterId) {
        let Some(cluster) = self.kept.catalogue.cluster_name(id) else { return };
        let plain = Site::default();
        let usual = format!("{}-{cluster}", plain.resource_group);
        // Somebody may have taken the name already.
        let others = (2..=u32::MAX).map(|number| format!("{usual}-{number}"));
        let names = std::iter::once(usual.clone()).chain(others);
        let mut sites = names.map(|resource_group| Site { resource_group, ..plain.clone() });
        if let Some(site) = sites.find(|site| !self.is_taken(id, &group_of(site))) {
            self.move_to(now, id, site);
        }
    }

    pub(super) fn move_to(&mut self, now: Now, id: ClusterId, site: Site) {
        self.batch.records.push(Record { now, entry: Entry::Site(id, site.clone()) });
        if let Some(estate) = self.kept.clusters.get_mut(&id) {
            estate.site = site;
        }
    }

    /// Whether another cluster has that group: because it is there, or because somebody has made it there.
    fn is_taken(&self, id: ClusterId, group: &GroupId) -> bool {
        let key = group.key();
        let mut others = self.kept.clusters.iter().filter(|(other, _)| **other != id);
        let entry = self.kept.catalogue.entry(&key);
        others.any(|(_, estate)| group_of(&estate.site).key() == key)
            || entry.is_some_and(|entry| entry.cluster != id)
    }
}

fn group_of(site: &Site) -> GroupId {
    GroupId { subscription: site.subscription.clone(), name: site.resource_group.clone() }
}
