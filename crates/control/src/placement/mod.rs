//! Placement: hosts for new machines, and scale sets that grow and shrink.

pub(crate) mod grow;
pub(crate) mod scale_set;
pub(crate) mod shrink;
pub(crate) mod spread;

pub use scale_set::instances;
pub use scale_set::{
    BadWish, DeleteInstances, INSTANCES_MAX, InstanceSelection, NewScaleSet, PolicyChange, Scale,
    ScaleSetChange, Upgrade, Wish, leaving, scale,
};
pub use shrink::{ScaleIn, ScaleInRule, pick_for_scale_in};
pub use spread::{FAULT_DOMAINS, Place, UPDATE_DOMAINS, Whereabouts, place_machine};
