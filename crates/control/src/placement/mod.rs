//! Placement: hosts for new machines, and scale sets that grow and shrink.

mod bad_wish;
mod bounds;
mod grow;
pub(crate) mod instances;
pub(crate) mod scale_set;
mod shrink;
mod spread;

pub use bad_wish::ScaleSetError;
pub use instances::{INSTANCES_MAX, instances, leaving};
pub use scale_set::{
    DeleteInstances, InstanceSelection, NewScaleSet, PolicyChange, Scale, ScaleSetChange, ScaleSetCommand,
    Upgrade, scale,
};
pub use shrink::{ScaleIn, ScaleInRule, pick_for_scale_in};
pub use spread::{FAULT_DOMAINS, Place, UPDATE_DOMAINS, Whereabouts, place_machine};
