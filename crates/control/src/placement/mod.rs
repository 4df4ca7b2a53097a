//! Placement: hosts for new machines, and scale sets that grow and shrink.

pub(crate) mod bounds;
mod candidate_hosts;
pub(crate) mod grow;
pub(crate) mod instances;
pub(crate) mod scale_set;
mod scale_set_error;
mod shrink;
mod spread;

pub use instances::{INSTANCES_MAX, instances};
pub use scale_set::{
    DeleteInstances, InstanceSelection, NewScaleSet, PolicyChange, Scale, ScaleSetChange, ScaleSetCommand,
    Upgrade, scale,
};
pub use scale_set_error::ScaleSetError;
pub use shrink::{ScaleIn, ScaleInRule, pick_for_scale_in};
pub use spread::{FAULT_DOMAINS, MachinePlacement, PlacementConstraints, UPDATE_DOMAINS, place_machine};
