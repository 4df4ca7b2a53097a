//! Fleet files: reading and writing them, and their difference from the current fleet.

pub(crate) mod current;
pub(crate) mod difference;
pub(crate) mod fleet;
pub(crate) mod position;

pub use current::CurrentFleet;
pub use difference::{Difference, UnlistedObjects, difference};
pub use fleet::{FLEET_BYTES_MAX, Fleet, FleetFileError};
pub use position::FleetPosition;
