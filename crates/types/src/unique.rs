//! Unique ids of machines, placement groups and scale sets: `vmId` and its like.
//!
//! They are derived from the identity of a server, so they survive its restart and differ from those of every other
//! server.

use crate::ids::{EventId, MachineId, ScaleSetId, Seed, TenantId};

/// The object that has the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unique {
    /// A machine: `vmId`.
    Machine(MachineId),
    /// A placement group: `placementGroupId`.
    PlacementGroup(TenantId),
    /// A scale set: `uniqueId`.
    ScaleSet(ScaleSetId),
}

impl Unique {
    /// The id, in the cluster with that identity. It is derived like the id of an event, from another secret: one id
    /// does not reveal the other.
    ///
    /// ```
    /// use forewarn_types::{MachineId, Seed, Unique};
    ///
    /// let id = Unique::Machine(MachineId(7)).id(&Seed([1; 16]));
    /// assert_eq!((id.len(), id.to_lowercase()), (36, id));
    /// ```
    #[must_use]
    pub fn id(self, identity: &Seed) -> String {
        let (kind, number) = match self {
            Self::Machine(MachineId(number)) => (1, number),
            Self::PlacementGroup(TenantId(number)) => (2, number),
            Self::ScaleSet(ScaleSetId(number)) => (3, number),
        };
        let mut own = *identity;
        own.0[0] ^= kind;
        EventId::nth(&own, u64::from(number)).to_string().to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_ids_differ_between_objects() {
        let ids = [1, 2].map(|byte| {
            let seed = Seed([byte; 16]);
            [0, 1].map(|number| {
                [
                    Unique::Machine(MachineId(number)).id(&seed),
                    Unique::PlacementGroup(TenantId(number)).id(&seed),
                    Unique::ScaleSet(ScaleSetId(number)).id(&seed),
                    EventId::nth(&seed, u64::from(number)).to_string().to_lowercase(),
                ]
            })
        });
        let mut all = ids.as_flattened().as_flattened().to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 16);
    }

    #[test]
    fn unique_ids_are_stable() {
        let seed = Seed([3; 16]);
        assert_eq!(Unique::Machine(MachineId(0)).id(&seed), "e00d5653-5fcd-439c-a340-14fffb839506");
        assert_eq!(Unique::PlacementGroup(TenantId(0)).id(&seed), "c0df7cf4-8c1e-44fc-87b7-0ca39e9334d1");
    }
}
