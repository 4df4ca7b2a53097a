//! Sites: the location and the resource group of a cluster. A resource group belongs to one cluster.

use forewarn_lifecycle::Name;

use super::draft::{ClaimCheck, ClusterDraft, SharedDraft};
use crate::command::{Site, SiteChange};
use crate::error::ControlError;
use crate::resource_id::GroupId;
use crate::resources::Body;
use crate::shared::NewClaim;
use crate::state::claim_of_resource;

impl ClusterDraft<'_> {
    /// The site of the cluster after a change. A resource group of another cluster is refused.
    pub(super) fn changed_site(&self, site: &Site, change: &SiteChange) -> Result<Site, ControlError> {
        let changed = change.apply(site);
        let claim = self.cluster().claim_of_site(self.id, self.shared, site, &changed);
        claim.map_or(Ok(()), |claim| self.check_claim(claim))?;
        Ok(changed)
    }

    /// Refuses a resource in a group of another cluster.
    pub(super) fn check_claim_of_resource(&self, id: &str, body: &Body) -> Result<(), ControlError> {
        let claim = claim_of_resource(self.id, self.shared, self.cluster().site(), (id, body));
        claim.map_or(Ok(()), |claim| self.check_claim(claim))
    }

    /// Checks that the cluster has a group. The location in the claim may be another: it follows.
    fn check_claim(&self, claim: NewClaim) -> Result<(), ControlError> {
        match (self.shared.claim(&claim.group.key()), self.claims) {
            (Some(held), _) if held.cluster != self.id => Err(ControlError::GroupTaken(claim.group.name)),
            (Some(_), _) | (None, ClaimCheck::Claimable) => Ok(()),
            (None, ClaimCheck::Claimed) => Err(ControlError::Unclaimed),
        }
    }
}

impl SharedDraft<'_> {
    /// The site of a new cluster: a resource group with its name, or with a number where that is taken.
    pub(super) fn site_of_new_cluster(&self, cluster: &Name) -> Site {
        let plain = Site::default();
        let usual = format!("{}-{cluster}", plain.resource_group);
        let numbered = (2..=u32::MAX).map(|number| format!("{usual}-{number}"));
        let names = std::iter::once(usual.clone()).chain(numbered);
        let mut sites = names.map(|resource_group| Site { resource_group, ..plain.clone() });
        sites.find(|site| self.state.claim(&GroupId::of_site(site).key()).is_none()).unwrap_or_default()
    }
}
