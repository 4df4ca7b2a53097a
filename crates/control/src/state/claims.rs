//! Resource groups that a cluster uses, and the claims that it needs for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ClusterState, ControlState};
use crate::command::{NamedCommand, Site};
use crate::request::{ClusterRequest, ResourceWrite};
use crate::resource_id::GroupId;
use crate::resources::{Body, key_of};
use crate::shared::{NewClaim, SharedState};
use crate::stream::ClusterId;

/// The claims that a cluster needs for a request, and does not have: of the groups that the request begins to use, and
/// of those whose location it changes. The caller takes them before the decision, and releases [`unused_claims`] after
/// it, whatever its result.
#[must_use]
pub fn claims_needed(
    id: ClusterId,
    state: &ClusterState,
    shared: &SharedState,
    request: &ClusterRequest,
) -> Vec<NewClaim> {
    let (commands, writes) = match request {
        ClusterRequest::Commands(batch) => (batch.commands.as_slice(), [].as_slice()),
        ClusterRequest::Transaction { transaction, .. } => {
            (transaction.commands.as_slice(), transaction.writes.as_slice())
        }
        ClusterRequest::Rules(_)
        | ClusterRequest::Report { .. }
        | ClusterRequest::Suspend { .. }
        | ClusterRequest::Remind { .. }
        | ClusterRequest::ScaleSet { .. }
        | ClusterRequest::Sweep
        | ClusterRequest::AdvanceWebhooks(_)
        | ClusterRequest::Close { .. } => return Vec::new(),
    };
    let (mut site, mut needed) = (state.site.clone(), BTreeMap::new());
    for command in commands {
        let NamedCommand::ChangeSite(change) = command else { continue };
        let changed = change.apply(&site);
        let claim = state.claim_of_site(id, shared, &site, &changed);
        needed.extend(claim.map(|claim| (claim.group.key(), claim)));
        site = changed;
    }
    for write in writes {
        let ResourceWrite::Put { id: resource, body, .. } = write else { continue };
        let Some(claim) = claim_of_resource(id, shared, &site, (resource, body)) else { continue };
        let key = claim.group.key();
        if key == key_of(resource) || !needed.contains_key(&key) {
            needed.insert(key, claim);
        }
    }
    needed.into_values().collect()
}

/// The groups that a cluster has claimed and does not use.
#[must_use]
pub fn unused_claims(id: ClusterId, state: &ClusterState, shared: &SharedState) -> Vec<GroupId> {
    let unused = shared.claims_of(id).filter(|(key, _)| !state.uses_group(key));
    unused.map(|(_, claim)| claim.group.clone()).collect()
}

/// The claims of groups that a cluster uses and has not claimed with their present location, unless another cluster has
/// them: after a crash, or after the resource of a group was removed.
#[must_use]
pub fn missing_claims(id: ClusterId, state: &ClusterState, shared: &SharedState) -> Vec<NewClaim> {
    let is_missing = |claim: &NewClaim| match shared.claim(&claim.group.key()) {
        Some(held) => held.cluster == id && held.location != claim.location,
        None => true,
    };
    state.groups_in_use().into_values().filter(is_missing).collect()
}

impl ClusterState {
    /// The claim that the cluster needs before its site changes, and does not have.
    ///
    /// A cluster of an older version may have the group of its site without a claim: it keeps it.
    pub(crate) fn claim_of_site(
        &self,
        id: ClusterId,
        shared: &SharedState,
        former: &Site,
        changed: &Site,
    ) -> Option<NewClaim> {
        let claim = self.location_in(NewClaim::of_site(changed));
        let key = claim.group.key();
        match shared.claim(&key) {
            Some(held) if held.cluster != id => (GroupId::of_site(former).key() != key).then_some(claim),
            Some(held) => (held.location != claim.location).then_some(claim),
            None => Some(claim),
        }
    }

    /// The claim with the location of the resource of its group, if there is one.
    fn location_in(&self, claim: NewClaim) -> NewClaim {
        let resource = self.resources.get(&claim.group.key());
        match resource.and_then(|resource| location_of(&resource.body)) {
            Some(location) => NewClaim { location, ..claim },
            None => claim,
        }
    }

    /// The groups that the cluster uses, by key.
    fn groups_in_use(&self) -> BTreeMap<String, NewClaim> {
        let mut groups = BTreeMap::new();
        let mut add = |group: GroupId| {
            let claim = || NewClaim { group: group.clone(), location: self.site.location.clone() };
            groups.entry(group.key()).or_insert_with(|| self.location_in(claim()));
        };
        self.resources.below("").filter_map(|(_, one)| GroupId::containing(&one.id)).for_each(&mut add);
        add(GroupId::of_site(&self.site));
        groups
    }
}

impl ControlState {
    /// The state after rows of an older version: the secrets of new clusters derived from that of the default one.
    pub(super) fn with_derived_secret(mut self) -> Self {
        if let Some(first) = self.clusters.get(&ClusterId::DEFAULT) {
            Arc::make_mut(&mut self.shared).secret = first.rules.seed();
        }
        self
    }

    /// The state after records and rows of an older version, which had no claims: each cluster has the groups that it
    /// uses. If several clusters use a group, the one that has it as a resource gets it, else the lowest number.
    #[must_use]
    pub fn with_derived_claims(mut self) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        let clusters: Vec<_> =
            self.clusters.iter().map(|(id, cluster)| (*id, cluster.groups_in_use())).collect();
        clusters.iter().for_each(|(id, _)| shared.release_all_claims(*id));
        let has_resource = |id: &ClusterId, key: &str| {
            self.clusters.get(id).is_some_and(|cluster| cluster.resources.get(key).is_some())
        };
        for wants_resource in [true, false] {
            for (id, groups) in &clusters {
                let own = groups.iter().filter(|(key, _)| !wants_resource || has_resource(id, key));
                own.for_each(|(_, claim)| shared.take_claim(*id, claim.clone()));
            }
        }
        shared.forget_origins();
        self
    }
}

/// The claim that a cluster needs before a resource is written, and does not have. The resource of a group sets its
/// location.
pub(crate) fn claim_of_resource(
    id: ClusterId,
    shared: &SharedState,
    site: &Site,
    (resource, body): (&str, &Body),
) -> Option<NewClaim> {
    let group = GroupId::containing(resource)?;
    let key = group.key();
    let own_location = (key == key_of(resource)).then(|| location_of(body)).flatten();
    let location = own_location.clone().unwrap_or_else(|| site.location.clone());
    match shared.claim(&key) {
        Some(held) if held.cluster == id && own_location.is_none_or(|location| held.location == location) => {
            None
        }
        Some(_) | None => Some(NewClaim { group, location }),
    }
}

/// The location in the body of a resource.
fn location_of(body: &Body) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(&body.0).ok()?;
    Some(body["location"].as_str()?.to_owned())
}
