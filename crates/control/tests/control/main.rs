//! The control plane, seen from outside.

#![cfg(test)]

mod commands;
mod documents;
mod fleets;
mod happenings;
mod lists;
mod pushes;
mod replay;
mod rollouts;
mod schemas;
mod town;
mod trail;
mod views;
#[path = "../../../lifecycle/tests/world/mod.rs"]
#[allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::panic,
    dead_code,
    unreachable_pub,
    reason = "a test world may be blunt"
)]
mod world;
