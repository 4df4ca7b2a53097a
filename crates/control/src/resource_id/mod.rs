//! Ids of Azure resources: their form, and the ids of machines and sets.

mod duration;
mod id;
mod kind;
mod names;

pub use duration::{parse_iso_duration, show_iso_duration};
pub use id::{GroupId, ResourceId};
pub use kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
pub use names::{availability_set_id, group_of, instance_id, instance_word, machine_id, scale_set_id};
