//! Reads the wanted state of machines, scale sets and availability sets from bodies.

pub(crate) mod common;
pub(crate) mod machine;
pub(crate) mod scale_set;
