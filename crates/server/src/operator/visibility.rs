//! Visibility of audit entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::{AuditEntry, Subject, cluster_key};
use forewarn_lifecycle::Name;
use forewarn_store::SUBJECTS_PER_QUERY_MAX;

use super::context::OperatorRequest;
use super::problem::ApiProblem;
use crate::snapshot::State;

/// Subjects that a query has for visibility: half of its maximum.
const SUBJECTS_MAX: usize = SUBJECTS_PER_QUERY_MAX / 2;

/// The audit entries that a request may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Visibility {
    /// Keys of clusters. None: all clusters, and entries without a cluster.
    clusters: Option<BTreeSet<String>>,
    /// Names of tenants. None: all.
    tenants: Option<BTreeSet<String>>,
}

impl Visibility {
    /// The requested clusters, restricted to the permit.
    pub(super) fn of(request: &OperatorRequest) -> Result<Self, ApiProblem> {
        let is_limited = !request.permit.scope.clusters.is_all();
        let clusters = match &request.named {
            Some(_) => Some(BTreeSet::from([request.cluster_key()])),
            None if is_limited => {
                let shared = request.control.shared();
                let reached = shared.clusters().filter(|(id, _)| request.permit.reaches(*id));
                Some(reached.map(key).collect())
            }
            None => None,
        };
        if request.permit.scope.tenants.is_all() {
            return Ok(Self { clusters, tenants: None });
        }
        let permit = Arc::clone(&request.permit);
        let seen = move |state: &State<'_>| {
            let tenants = state.cluster.tenants().filter(|(id, _)| permit.sees(state.cluster, *id));
            let scope = permit.scope.tenants.named().map(ToString::to_string);
            scope.chain(tenants.map(|(_, tenant)| tenant.name.to_string())).collect()
        };
        let clusters = clusters.or_else(|| Some(request.control.shared().clusters().map(key).collect()));
        Ok(Self { clusters, tenants: Some(request.control.look(seen)?) })
    }

    #[cfg(test)]
    pub(super) fn limited(clusters: BTreeSet<String>, tenants: BTreeSet<String>) -> Self {
        Self { clusters: Some(clusters), tenants: Some(tenants) }
    }

    /// Keys of the visible clusters.
    pub(super) fn clusters(&self, request: &OperatorRequest) -> Vec<String> {
        match &self.clusters {
            Some(clusters) => clusters.iter().cloned().collect(),
            None => request.control.shared().clusters().map(key).collect(),
        }
    }

    /// Keys of the visible clusters. None: all clusters, and entries without a cluster.
    pub(super) fn cluster_keys(&self) -> Option<&BTreeSet<String>> {
        self.clusters.as_ref()
    }

    /// Names of the visible tenants. None: all.
    pub(super) fn tenants(&self) -> Option<&BTreeSet<String>> {
        self.tenants.as_ref()
    }

    /// Groups of subjects for a query: every visible entry has a subject of each group, so that the store finds
    /// entries by index. With too many subjects there is no group, and every entry is checked.
    pub(super) fn groups(&self) -> Vec<Vec<Subject>> {
        let clusters: Vec<_> = self.clusters.iter().flatten().cloned().collect();
        let all_tenants =
            || self.clusters.as_ref().map(|_| clusters.iter().cloned().map(Subject::Cluster).collect());
        let group = self.tenants_in(&clusters).or_else(all_tenants);
        group.filter(|group| group.len() <= SUBJECTS_MAX).into_iter().collect()
    }

    /// The visible tenants in some of the visible clusters, as subjects. None: all tenants.
    pub(super) fn tenants_in(&self, clusters: &[String]) -> Option<Vec<Subject>> {
        let tenants = self.tenants.as_ref()?;
        let of = |cluster: &String| {
            let cluster = cluster.clone();
            tenants.iter().map(move |name| Subject::Tenant { cluster: cluster.clone(), name: name.clone() })
        };
        Some(clusters.iter().flat_map(of).collect())
    }

    /// Returns true if an entry is visible. An entry that also names other tenants is not.
    pub(super) fn admits(&self, entry: &AuditEntry) -> bool {
        let in_clusters = |known: &BTreeSet<String>| known.contains(&entry.cluster_key());
        let in_tenants = |known: &BTreeSet<String>| {
            !entry.tenants.is_empty() && entry.tenants.iter().all(|tenant| known.contains(tenant))
        };
        self.clusters.as_ref().is_none_or(in_clusters) && self.tenants.as_ref().is_none_or(in_tenants)
    }
}

/// Key of a cluster in the audit log.
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
    fn an_entry_that_names_other_tenants_is_not_visible() {
        let of = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        let unlimited = Visibility::default();
        assert!(unlimited.admits(&entry("", &[])) && unlimited.admits(&entry("west", &["web"])));
        let west = Visibility { clusters: of(&["west"]), tenants: None };
        assert!(west.admits(&entry("west", &[])));
        assert!(!west.admits(&entry("", &[])) && !west.admits(&entry("default", &["web"])));
        let web = Visibility { clusters: of(&["default"]), tenants: of(&["web"]) };
        assert!(web.admits(&entry("default", &["web"])));
        assert!(!web.admits(&entry("default", &["web", "db"])) && !web.admits(&entry("default", &[])));
        assert!(!web.admits(&entry("west", &["web"])));
        assert!(unlimited.groups().is_empty());
        assert_eq!(west.groups(), [[Subject::Cluster("west".to_owned())]]);
        let tenant = Subject::Tenant { cluster: "default".to_owned(), name: "web".to_owned() };
        assert_eq!(web.groups(), [[tenant]]);
    }
}
