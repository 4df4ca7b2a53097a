//! Plans: the commands that make the fleet match a body, or carry an action out.

pub(crate) mod action;
pub(crate) mod common;
pub(crate) mod machine;
pub(crate) mod scale_set;
