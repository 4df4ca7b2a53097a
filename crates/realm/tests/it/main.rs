//! Streams of a realm: one contract for every engine, faults of the simulated one, and members of etcd that fail.

#![cfg(test)]
#![allow(
    unreachable_pub,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test may be blunt"
)]

mod contract;
mod engines;
mod faults;
mod journals;
mod members;
mod world;
