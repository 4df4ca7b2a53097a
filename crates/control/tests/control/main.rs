//! The control plane, seen from outside.

#![cfg(test)]

#[path = "../world/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "a test world may be blunt")]
mod catalogue_world;
mod commands;
mod documents;
mod fleets;
mod happenings;
mod lists;
mod pushes;
mod random_fleets;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod random_requests;
mod replay;
mod requests;
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
