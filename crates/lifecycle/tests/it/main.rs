//! The rules: promises over random histories, and single cases.

#![cfg(test)]

mod arrivals;
mod bare;
mod budgets;
mod capacity;
mod enrolment_rule;
mod fencing;
mod health_gate;
mod host_mode;
mod host_steps;
mod invariants;
mod limits;
mod machines;
mod outside;
mod room;
mod rules;
mod state;
mod tenant_windows;
mod upgrades;
