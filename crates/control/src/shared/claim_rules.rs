//! Rules of claims: a group that one cluster has is refused to every other.

use std::sync::Arc;

use forewarn_lifecycle::BadRows;

use crate::limits::{CLAIMS_PER_CHANGE_MAX, ID_BYTES_MAX, LOCATION_BYTES_MAX};
use crate::refusal::Refusal;
use crate::resource_id::GroupId;
use crate::rows::check_new;
use crate::shared::change::Change;
use crate::shared::claim::{Claim, NewClaim};
use crate::shared::state::SharedState;
use crate::stream::ClusterId;

impl SharedState {
    /// The claim of a resource group, by key: the id of the group in lower case.
    #[must_use]
    pub fn claim(&self, key: &str) -> Option<&Claim> {
        self.claims.get(key).map(Arc::as_ref)
    }

    /// Every claim, by key.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values().map(Arc::as_ref)
    }

    /// The claims of a cluster, with their keys.
    pub fn claims_of(&self, cluster: ClusterId) -> impl Iterator<Item = (&str, &Claim)> {
        let from: Arc<str> = "".into();
        let own = self.cluster_claims.range((cluster, from)..).take_while(move |(id, _)| *id == cluster);
        own.filter_map(|(_, key)| Some((&**key, self.claim(key)?)))
    }

    pub(crate) fn decide_take(
        &self,
        cluster: ClusterId,
        claims: &[NewClaim],
    ) -> Result<Vec<Change>, Refusal> {
        self.known_cluster(cluster)?;
        let mut wanted = Vec::new();
        for claim in claims {
            let key = claim.group.key();
            Refusal::check(key.len(), ID_BYTES_MAX, "bytes in an id")?;
            Refusal::check(claim.location.len(), LOCATION_BYTES_MAX, "bytes in a location")?;
            match self.claim(&key) {
                Some(held) if held.cluster != cluster => {
                    return Err(Refusal::GroupTaken(claim.group.name.clone()));
                }
                Some(held) if held.location == claim.location => {}
                Some(_) | None => wanted.push(claim.clone()),
            }
        }
        let parts = wanted.chunks(CLAIMS_PER_CHANGE_MAX);
        Ok(parts.map(|claims| Change::ClaimsTaken { cluster, claims: claims.to_vec() }).collect())
    }

    /// Claims of other clusters, and groups without a claim, stay as they are.
    pub(crate) fn decide_release(&self, cluster: ClusterId, groups: &[GroupId]) -> Vec<Change> {
        let is_own =
            |group: &&GroupId| self.claim(&group.key()).is_some_and(|claim| claim.cluster == cluster);
        let own: Vec<_> = groups.iter().filter(is_own).cloned().collect();
        let parts = own.chunks(CLAIMS_PER_CHANGE_MAX);
        parts.map(|groups| Change::ClaimsReleased { cluster, groups: groups.to_vec() }).collect()
    }

    /// Gives a group to a cluster, unless another has it.
    pub(crate) fn take_claim(&mut self, cluster: ClusterId, NewClaim { group, location }: NewClaim) {
        let key: Arc<str> = group.key().into();
        let group = match self.claim(&key) {
            Some(held) if held.cluster != cluster => return,
            Some(held) => held.group.clone(),
            None => group,
        };
        self.cluster_claims.insert((cluster, Arc::clone(&key)));
        self.claims.insert(key, Arc::new(Claim { cluster, group, location }));
    }

    pub(crate) fn release_claim(&mut self, cluster: ClusterId, key: &str) {
        if self.claim(key).is_some_and(|claim| claim.cluster == cluster) {
            self.claims.remove(key);
            self.cluster_claims.remove(&(cluster, key.into()));
        }
    }

    pub(crate) fn release_all_claims(&mut self, cluster: ClusterId) {
        let keys: Vec<_> = self.claims_of(cluster).map(|(key, _)| key.to_owned()).collect();
        keys.iter().for_each(|key| self.release_claim(cluster, key));
    }

    pub(crate) fn restore_claim(&mut self, claim: Claim) -> Result<(), BadRows> {
        if !self.clusters.contains_key(&claim.cluster) {
            return Err(BadRows("a claim is of a cluster that is not there"));
        }
        let key: Arc<str> = claim.group.key().into();
        self.cluster_claims.insert((claim.cluster, Arc::clone(&key)));
        check_new(self.claims.insert(key, Arc::new(claim)).as_ref())
    }
}
