//! The formats, seen from outside: one program, so that the modules share their helpers and link once.

#![cfg(test)]

mod captures;
mod commands;
mod editions;
mod explanations;
mod fleets;
mod happenings;
mod instance;
mod lists;
mod problems;
mod pushes;
mod reading;
mod rollouts;
mod schemas;
mod sending;
mod showing;
mod start_requests;
mod support;
mod tale;
mod template_functions;
mod template_limits;
mod templates;
mod town;
mod trail;
mod troubles;
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
