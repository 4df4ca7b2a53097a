//! Fleet files: reading and writing them, and their difference from the fleet that is there.

pub(crate) mod difference;
pub(crate) mod fleet;
pub(crate) mod position;

pub use difference::{Difference, Unmentioned, difference};
pub use fleet::{BadFleet, FLEET_BYTES_MAX, Fleet, fleet_of};
pub use position::FleetPlace;
