//! The formats of the metadata endpoint.

#![cfg(test)]

mod captures;
mod editions;
mod instance;
mod problems;
mod reading;
mod start_requests;
mod support;
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
