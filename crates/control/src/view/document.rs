//! The document that the machines of a tenant read.

use forewarn_imds::{Document, Naming};
use forewarn_lifecycle::{ResourceKind, Tenant};

/// The document of a tenant as it is now.
#[must_use]
pub fn document_of(tenant: &Tenant) -> Document {
    let naming = naming(tenant.shape.resource_kind());
    Document { incarnation: tenant.incarnation, events: tenant.events().to_vec(), naming }
}

fn naming(kind: ResourceKind) -> Naming {
    match kind {
        ResourceKind::VirtualMachine | ResourceKind::ScaleSetInstance(_) => Naming::Machines,
        ResourceKind::RoleInstance => Naming::RoleInstances,
    }
}

#[cfg(test)]
mod tests {
    use forewarn_lifecycle::{ScaleSetId, Shape};

    use super::*;

    #[test]
    fn only_role_instances_are_no_machines() {
        let naming = |shape: Shape| naming(shape.resource_kind());
        assert_eq!(naming(Shape::StandaloneMachine), Naming::Machines);
        assert_eq!(naming(Shape::AvailabilitySet), Naming::Machines);
        assert_eq!(naming(Shape::PlacementGroup(ScaleSetId(0))), Naming::Machines);
        assert_eq!(naming(Shape::CloudService), Naming::RoleInstances);
    }
}
