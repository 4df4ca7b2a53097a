//! Filter of a stream, and the topics under which its group is found: an entry reaches only groups that it may concern.

use forewarn_control::AuditEntry;

use super::super::visibility::Visibility;

/// The entries that a client gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EntryFilter {
    pub(super) visibility: Visibility,
    /// Entries of this tenant. None: of all.
    pub(super) tenant: Option<String>,
}

/// A property that entries are looked up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Everything,
    /// Key of a cluster.
    Cluster(String),
    /// Name of a tenant, in any cluster.
    Tenant(String),
}

impl EntryFilter {
    pub(super) fn admits(&self, entry: &AuditEntry) -> bool {
        let is_concerned = |tenant: &String| entry.tenants.contains(tenant);
        self.tenant.as_ref().is_none_or(is_concerned) && self.visibility.admits(entry)
    }

    /// Topics of which every admitted entry has at least one.
    pub(super) fn topics(&self) -> Vec<Topic> {
        match &self.tenant {
            Some(tenant) => vec![Topic::Tenant(tenant.clone())],
            None => match (self.visibility.tenants(), self.visibility.cluster_keys()) {
                (Some(tenants), _) => tenants.iter().cloned().map(Topic::Tenant).collect(),
                (None, Some(clusters)) => clusters.iter().cloned().map(Topic::Cluster).collect(),
                (None, None) => vec![Topic::Everything],
            },
        }
    }
}

/// All topics of an entry.
pub(super) fn topics_of(entry: &AuditEntry) -> impl Iterator<Item = Topic> {
    let tenants = entry.tenants.iter().cloned().map(Topic::Tenant);
    [Topic::Everything, Topic::Cluster(entry.cluster_key())].into_iter().chain(tenants)
}
