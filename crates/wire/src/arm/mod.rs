//! Azure Resource Manager: what its clients send, and what they are shown. No I/O, no HTTP: values in, values out.
//!
//! ```text
//!   what a client sends ──▶ merged, made canonical ──▶ what the rules must know of it ──▶ commands by name
//!                                    │
//!   what a client is shown ◀── kept as it is ◀── and what the rules know better
//! ```
//!
//! A body is kept as its client wrote it, with what nobody here understands; the fleet is the truth where it knows more.

mod error;
mod id;
mod show;
mod version;

pub use error::ArmError;
pub use id::{GroupId, ResourceId};
pub use show::{
    Expand, Kept, Provisioning, Sight, availability_set_id, flexible_machine, group_of,
    instance_instance_view, instances_there, is_gone, is_leaving, machine_id, machine_instance_view,
    plain_availability_set, plain_machine, plain_scale_set, scale_set_id, scale_set_instance_view,
    show_availability_set, show_flexible_machine, show_instance, show_machine, show_scale_set,
};
pub use version::{ApiVersion, BadVersion};
