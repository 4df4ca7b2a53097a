//! Placement of machines and of instances of scale sets, on a cluster whose rules must accept the result.

mod cost;
mod flexible_names;
mod scale_set;
mod shrink;
mod spread;
