//! The types of resources that are more than a body here.

pub use forewarn_control::resource_id::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};

/// One of these types, or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Machine,
    ScaleSet,
    Instance,
    AvailabilitySet,
    Other,
}

impl Kind {
    /// The type of that name, in any spelling.
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
        assert_eq!(Kind::of("microsoft.compute/VIRTUALMACHINES"), Kind::Machine);
        assert_eq!(Kind::of(SCALE_SETS), Kind::ScaleSet);
        assert_eq!(Kind::of(INSTANCES), Kind::Instance);
        assert_eq!(Kind::of(AVAILABILITY_SETS), Kind::AvailabilitySet);
        assert_eq!(Kind::of("Microsoft.Network/virtualNetworks"), Kind::Other);
    }
}
