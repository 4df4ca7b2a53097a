//! Of which entries of the trail somebody may know.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_wire::operator::TrailEntry;

use super::fault::Fault;
use super::visit::Visit;
use crate::engine::State;

/// Of which entries somebody may, and wants to, know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audience {
    /// The names of clusters; all, and what is about none, if not said.
    clusters: Option<BTreeSet<String>>,
    /// The names of tenants; all, if not said.
    tenants: Option<BTreeSet<String>>,
}

impl Audience {
    /// That of a visit: what was asked for, as far as the permit reaches.
    pub(super) async fn of(visit: &Visit) -> Result<Self, Fault> {
        let is_limited = !visit.permit.scope.clusters.is_all();
        let clusters = match &visit.named {
            Some(name) => Some(BTreeSet::from([name.clone()])),
            None if is_limited => {
                let roster = visit.engine.roster();
                let reached = roster.clusters().filter(|(id, _)| visit.permit.reaches(*id));
                Some(reached.map(|(_, name)| name.to_string()).collect())
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
        let clusters = clusters
            .or_else(|| Some(visit.engine.roster().clusters().map(|(_, name)| name.to_string()).collect()));
        Ok(Self { clusters, tenants: Some(visit.engine.look(seen).await?) })
    }

    /// Whether an entry is for them. One that is about others too is not: it names them.
    pub(super) fn admits(&self, entry: &TrailEntry) -> bool {
        let in_clusters = |known: &BTreeSet<String>| known.contains(&entry.cluster);
        let in_tenants = |known: &BTreeSet<String>| {
            !entry.tenants.is_empty() && entry.tenants.iter().all(|tenant| known.contains(tenant))
        };
        self.clusters.as_ref().is_none_or(in_clusters) && self.tenants.as_ref().is_none_or(in_tenants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_wire::operator::{Chain, Told};

    fn entry(cluster: &str, tenants: &[&str]) -> TrailEntry {
        let tenants = tenants.iter().map(ToString::to_string).collect();
        Chain::default().seal(Told { cluster: cluster.to_owned(), tenants, ..Told::default() })
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
    }
}
