//! The control plane, seen from outside.

#![cfg(test)]

mod commands;
mod documents;
mod fleets;
mod happenings;
mod lists;
mod placement;
mod promises;
mod pushes;
mod random_fleets;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod random_requests;
mod replay;
mod requests;
mod resources;
mod rollouts;
mod rules;
mod schemas;
mod trail;
mod views;
mod webhooks;
