//! The control plane, seen from outside.

#![cfg(test)]

mod admissions;
mod capacity;
mod chains;
mod claims;
mod closing;
mod commands;
mod deliveries;
mod documents;
mod errors;
mod fleet_cost;
mod fleet_growth;
mod fleet_pieces;
mod fleets;
mod happenings;
mod lists;
mod lookups;
mod old_data;
mod placement;
mod promises;
mod pushes;
mod random_fleets;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod random_requests;
mod replay;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod requests;
mod required_notice;
mod resources;
mod rollouts;
mod rules;
mod schemas;
mod starts;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod streams;
mod trail;
mod transactions;
mod views;
mod webhooks;
