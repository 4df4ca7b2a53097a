//! The program `forewarn` from outside: as a server for machines, operators and clients of Azure, and as their command line.
//!
//! Each test starts the program for itself. Tests that need root, network namespaces or programs of others are ignored; steps of
//! `cargo xtask test` run them.

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod access;
mod agents;
mod arm;
mod cli;
mod conformance;
mod dashboard;
mod doctor;
mod drivers;
mod durable;
mod endpoint;
mod entrance;
mod faults;
mod guides;
mod live;
mod monitoring;
mod plugins;
mod pressure;
mod realm;
mod realm_dev;
mod realm_machines;
mod reset;
mod secure;
mod store;
mod supervised;
mod terminal_picture;
mod test;
mod webhooks;

use std::ffi::OsString;

/// The program under test: the one that was built, or the one that `FOREWARN_PROGRAM` names.
fn program() -> OsString {
    std::env::var_os("FOREWARN_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_forewarn").into())
}
