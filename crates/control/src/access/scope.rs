//! Tenants within a scope.

use forewarn_lifecycle::{Cluster, Name, Shape, TenantId};

use crate::shared::Reach;

/// True for a tenant of a scope. A scope has a placement group under the name of its scale set: people know no other.
pub(crate) fn is_in_scope(cluster: &Cluster, tenant: TenantId, scope: &Reach<Name>) -> bool {
    let name = cluster.tenant(tenant).and_then(|tenant| match tenant.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set).map(|set| &set.name),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => Some(&tenant.name),
    });
    scope.is_all() || name.is_some_and(|name| scope.includes(name.as_str()))
}
