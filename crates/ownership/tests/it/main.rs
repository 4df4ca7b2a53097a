//! The protocol: a model of all its interleavings, and properties of its parts.

#![cfg(test)]

mod assignment;
mod clocks;
mod commits;
mod heartbeats;
mod histories;
mod liveness;
mod model;
mod moves;
mod reference_engine;
mod shared_stream;
mod wall_clocks;
