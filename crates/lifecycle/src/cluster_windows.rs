//! The windows of the tenants of a cluster.

use forewarn_types::TenantId;

use crate::cluster::Cluster;
use crate::rows::BadRows;
use crate::tenant::Shape;
use crate::tenant_windows::WindowOwner;
use crate::window::Window;

impl Cluster {
    /// Returns true if a tenant or a scale set has windows.
    #[must_use]
    pub fn has_tenant_windows(&self) -> bool {
        !self.tenant_windows.is_empty()
    }

    /// The windows of an owner; empty if work on its hosts may start at any time.
    #[must_use]
    pub fn windows_of(&self, owner: WindowOwner) -> &[Window] {
        self.tenant_windows.get(&owner).map_or(&[], |windows| windows)
    }

    /// The windows of a tenant, or of its scale set; empty if work on its hosts may start at any time.
    #[must_use]
    pub fn windows_of_tenant(&self, tenant: TenantId) -> &[Window] {
        if self.tenant_windows.is_empty() {
            return &[];
        }
        self.window_owner(tenant).map_or(&[], |owner| self.windows_of(owner))
    }

    /// The owner of the windows of a tenant.
    #[must_use]
    pub fn window_owner(&self, tenant: TenantId) -> Option<WindowOwner> {
        Some(match self.tenant(tenant)?.shape {
            Shape::PlacementGroup(set) => WindowOwner::ScaleSet(set),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => {
                WindowOwner::Tenant(tenant)
            }
        })
    }

    /// The tenants that have windows, their own or those of their scale set.
    pub(crate) fn tenants_with_windows(&self) -> impl Iterator<Item = TenantId> {
        self.tenant_windows.keys().flat_map(|owner| match owner {
            WindowOwner::Tenant(tenant) => vec![*tenant],
            WindowOwner::ScaleSet(set) => {
                self.scale_set(*set).map_or_else(Vec::new, |set| set.groups.clone())
            }
        })
    }

    /// Restores the windows of an owner that has been restored.
    pub(crate) fn restore_windows(&mut self, owner: WindowOwner, windows: &[Window]) -> Result<(), BadRows> {
        let is_known = match owner {
            WindowOwner::Tenant(tenant) => self.tenant(tenant).is_some(),
            WindowOwner::ScaleSet(set) => self.scale_set(set).is_some(),
        };
        if !is_known || windows.is_empty() {
            return Err(BadRows("windows have no owner, or there are none"));
        }
        match self.tenant_windows.insert(owner, windows.into()) {
            Some(_) => Err(BadRows("windows of one owner are in two rows")),
            None => Ok(()),
        }
    }
}
