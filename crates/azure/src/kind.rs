//! Resource types that have an effect on the fleet.

pub use forewarn_control::resource_id::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceKind {
    Machine,
    ScaleSet,
    Instance,
    AvailabilitySet,
    Other,
}

impl ResourceKind {
    /// The type of a name, in any case.
    pub(super) fn of(name: &str) -> Self {
        let known = [
            (VIRTUAL_MACHINES, Self::Machine),
            (SCALE_SETS, Self::ScaleSet),
            (INSTANCES, Self::Instance),
            (AVAILABILITY_SETS, Self::AvailabilitySet),
        ];
        let found = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or(Self::Other, |(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_in_any_spelling() {
        assert_eq!(ResourceKind::of("microsoft.compute/VIRTUALMACHINES"), ResourceKind::Machine);
        assert_eq!(ResourceKind::of(SCALE_SETS), ResourceKind::ScaleSet);
        assert_eq!(ResourceKind::of(INSTANCES), ResourceKind::Instance);
        assert_eq!(ResourceKind::of(AVAILABILITY_SETS), ResourceKind::AvailabilitySet);
        assert_eq!(ResourceKind::of("Microsoft.Network/virtualNetworks"), ResourceKind::Other);
    }
}
