//! Of which entries of the trail somebody may know.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::{AuditEntry, Subject, cluster_key};
use forewarn_lifecycle::Name;
use forewarn_store::SUBJECTS_PER_QUERY_MAX;

use super::fault::Fault;
use super::visit::Visit;
use crate::snapshot::State;

/// Subjects that a question has for an audience: half of what it may have.
const SUBJECTS_MAX: usize = SUBJECTS_PER_QUERY_MAX / 2;

/// Of which entries somebody may, and wants to, know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audience {
    /// The keys of clusters; all, and what is about none, if not said.
    clusters: Option<BTreeSet<String>>,
    /// The names of tenants; all, if not said.
    tenants: Option<BTreeSet<String>>,
}

impl Audience {
    /// That of a visit: what was asked for, as far as the permit reaches.
    pub(super) fn of(visit: &Visit) -> Result<Self, Fault> {
        let is_limited = !visit.permit.scope.clusters.is_all();
        let clusters = match &visit.named {
            Some(_) => Some(BTreeSet::from([visit.cluster_key()])),
            None if is_limited => {
                let shared = visit.engine.shared();
                let reached = shared.clusters().filter(|(id, _)| visit.permit.reaches(*id));
                Some(reached.map(key).collect())
            }
            None => None,
        };
        if visit.permit.scope.tenants.is_all() {
            return Ok(Self { clusters, tenants: None });
        }
        let permit = Arc::clone(&visit.permit);
        let seen = move |state: &State<'_>| {
            let tenants = state.cluster.tenants().filter(|(id, _)| permit.sees(state.cluster, *id));
            let scope = permit.scope.tenants.named().map(ToString::to_string);
            scope.chain(tenants.map(|(_, tenant)| tenant.name.to_string())).collect()
        };
        let clusters = clusters.or_else(|| Some(visit.engine.shared().clusters().map(key).collect()));
        Ok(Self { clusters, tenants: Some(visit.engine.look(seen)?) })
    }

    /// The keys of the clusters that they want to know of, of all that there are.
    pub(super) fn clusters(&self, visit: &Visit) -> Vec<String> {
        match &self.clusters {
            Some(clusters) => clusters.iter().cloned().collect(),
            None => visit.engine.shared().clusters().map(key).collect(),
        }
    }

    /// Groups of subjects of which every entry that is for them concerns one: a question with these costs what it finds. Where
    /// there are too many for one question there are none, and every entry has to be looked at.
    pub(super) fn groups(&self) -> Vec<Vec<Subject>> {
        let mut groups = Vec::new();
        let clusters = self.clusters.iter().flatten();
        if let Some(tenants) = &self.tenants {
            let of = |cluster: &String| {
                let cluster = cluster.clone();
                tenants
                    .iter()
                    .map(move |name| Subject::Tenant { cluster: cluster.clone(), name: name.clone() })
            };
            groups.push(clusters.flat_map(of).collect());
        } else if self.clusters.is_some() {
            groups.push(clusters.cloned().map(Subject::Cluster).collect::<Vec<_>>());
        }
        groups.retain(|group| group.len() <= SUBJECTS_MAX);
        groups
    }

    /// Whether an entry is for them. One that is about others too is not: it names them.
    pub(super) fn admits(&self, entry: &AuditEntry) -> bool {
        let in_clusters = |known: &BTreeSet<String>| known.contains(&entry.cluster_key());
        let in_tenants = |known: &BTreeSet<String>| {
            !entry.tenants.is_empty() && entry.tenants.iter().all(|tenant| known.contains(tenant))
        };
        self.clusters.as_ref().is_none_or(in_clusters) && self.tenants.as_ref().is_none_or(in_tenants)
    }
}

/// Under what entries about a cluster are found.
fn key((id, name): (ClusterId, &Name)) -> String {
    cluster_key(id.0, name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::{Chain, NewAuditEntry};

    fn entry(cluster: &str, tenants: &[&str]) -> AuditEntry {
        let tenants = tenants.iter().map(ToString::to_string).collect();
        Chain::default().seal(NewAuditEntry {
            cluster: cluster.to_owned(),
            tenants,
            ..NewAuditEntry::default()
        })
    }

    #[test]
    fn an_entry_about_others_too_is_not_for_those_who_may_not_know_them() {
        let of = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        let everybody = Audience::default();
        assert!(everybody.admits(&entry("", &[])) && everybody.admits(&entry("west", &["web"])));
        let west = Audience { clusters: of(&["west"]), tenants: None };
        assert!(west.admits(&entry("west", &[])));
        assert!(!west.admits(&entry("", &[])) && !west.admits(&entry("default", &["web"])));
        let web = Audience { clusters: of(&["default"]), tenants: of(&["web"]) };
        assert!(web.admits(&entry("default", &["web"])));
        assert!(!web.admits(&entry("default", &["web", "db"])) && !web.admits(&entry("default", &[])));
        assert!(!web.admits(&entry("west", &["web"])));
        assert!(everybody.groups().is_empty());
        assert_eq!(west.groups(), [[Subject::Cluster("west".to_owned())]]);
        let tenant = Subject::Tenant { cluster: "default".to_owned(), name: "web".to_owned() };
        assert_eq!(web.groups(), [[tenant]]);
    }
}
