//! Fleet files: reading and writing them, and their difference from the current fleet.

pub(crate) mod check;
pub(crate) mod current;
pub(crate) mod difference;
pub(crate) mod fleet;
pub(crate) mod pieces;
pub(crate) mod position;
pub(crate) mod refused;
mod sections;
pub(crate) mod trial;

pub use current::CurrentFleet;
pub use difference::{Difference, UnlistedObjects, difference};
pub use fleet::{FLEET_BYTES_MAX, Fleet, FleetFileError};
pub use pieces::{FleetPiece, PIECE_ENTRIES_MAX, REQUEST_ENTRIES_MAX};
pub use position::FleetPosition;
pub use refused::refused_place;
pub use trial::{FleetRejection, TargetCluster};
