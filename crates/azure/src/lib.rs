//! Azure Resource Manager: request bodies, commands, response bodies and templates, which are pure; and its HTTP API
//! ([`http`]), which a server serves as an extension.
//!
//! ```text
//!   request body ──▶ merged, made canonical ──▶ read ──▶ plan: commands by name
//!                            │
//!                       stored body ──▶ show, with the state of the fleet ──▶ response body
//! ```
//!
//! A body is stored as its client wrote it, unknown members included. Where the fleet knows better, the response says
//! so.

mod body;
mod canonical;
pub mod deployment;
mod error;
pub mod http;
mod images;
mod instances;
mod kind;
mod merge;
mod names;
pub mod network;
mod plan;
mod policy;
mod presence;
mod profile;
pub mod providers;
mod read;
mod refresh;
mod refusals;
mod settle;
mod show;
pub mod sizes;
pub mod template;
mod version;
mod versioned_members;

pub use body::{BODY_BYTES_MAX, BODY_DEPTH_MAX, read_body};
pub use canonical::canonical;
pub use error::ArmError;
pub use images::{IMAGE_VERSION, Image};
pub use instances::{InstanceSelection, find_instance, read_instances, read_named_instances};
pub use kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
pub use merge::merge;
pub use plan::action::{Action, plan_action, plan_instances};
pub use plan::machine::{MachinePlan, plan_availability_set, plan_instance, plan_machine};
pub use plan::scale_set::{image_since, plan_scale_set};
pub use presence::{instances_there, is_gone, is_leaving};
pub use read::machine::{
    AvailabilitySetWanted, Domains, MachineWanted, Protection, read_availability_set, read_machine,
    read_protection,
};
pub use read::scale_set::{ScaleSetWanted, read_scale_set};
pub use refusals::{bad_command, refused, scale_set_error, unknown};
pub use settle::{normal_location, same_location, settle};
pub use show::{
    Expand, InstanceBody, Provisioning, ShowContext, StoredResource, instance_instance_view,
    machine_instance_view, plain_availability_set, plain_machine, plain_scale_set, scale_set_instance_view,
    show_availability_set, show_flexible_machine, show_instance, show_machine, show_scale_set,
};
pub use version::{ApiVersion, InvalidVersion};
pub use versioned_members::{check_version, hide_newer, unknown_member};
