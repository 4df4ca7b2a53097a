//! Azure Resource Manager: what its clients send, and what they are shown. No I/O, no HTTP: values in, values out.
//!
//! ```text
//!   what a client sends ──▶ merged, made canonical ──▶ what the rules must know of it ──▶ commands by name
//!                                    │
//!   what a client is shown ◀── kept as it is ◀── and what the rules know better
//! ```
//!
//! A body is kept as its client wrote it, with what nobody here understands; the fleet is the truth where it knows more.

mod body;
mod canonical;
mod duration;
mod error;
mod gate;
mod id;
mod instances;
mod kind;
mod merge;
mod names;
mod plan_action;
mod plan_common;
mod plan_machine;
mod policy;
mod profile;
mod read_common;
mod read_machine;
mod read_scale_set;
mod refresh;
mod refused;
mod settle;
mod version;

pub use body::{BODY_BYTES_MAX, BODY_DEPTH_MAX, read_body};
pub use canonical::canonical;
pub use duration::{parse_iso_duration, show_iso_duration};
pub use error::ArmError;
pub use gate::{check_version, hide_newer};
pub use id::{GroupId, ResourceId};
pub use instances::{Chosen, find_instance, read_instances, read_named_instances};
pub use kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
pub use merge::merge;
pub use plan_action::{Action, plan_action, plan_instances, plan_scale_set_removal};
pub use plan_machine::{MachinePlan, plan_availability_set, plan_instance, plan_machine};
pub use read_machine::{
    AvailabilitySetWanted, Domains, MachineWanted, Protection, read_availability_set, read_machine,
    read_protection,
};
pub use read_scale_set::{ScaleIn, ScaleSetWanted, UpgradeWanted, read_scale_set};
pub use refresh::{refresh_availability_set, refresh_machine, refresh_scale_set};
pub use refused::{bad_command, bad_wish, refused, unknown};
pub use settle::{RESOURCE_BYTES_MAX, same_location, settle};
pub use version::{ApiVersion, BadVersion};
