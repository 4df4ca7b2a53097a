//! The formats, seen from outside: one program, so that the modules share their helpers and link once.

#[cfg(test)]
mod captures;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod editions;
#[cfg(test)]
mod explanations;
#[cfg(test)]
mod fleets;
#[cfg(test)]
mod happenings;
#[cfg(test)]
mod instance;
#[cfg(test)]
mod problems;
#[cfg(test)]
mod pushes;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod rollouts;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod showing;
#[cfg(test)]
mod start_requests;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tale;
#[cfg(test)]
mod template_functions;
#[cfg(test)]
mod template_limits;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod town;
#[cfg(test)]
mod trail;
#[cfg(test)]
mod troubles;
#[cfg(test)]
mod views;
#[cfg(test)]
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
