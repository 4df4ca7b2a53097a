//! Servers of a realm in one process, connected over loopback.

#![cfg(test)]

mod audit;
mod authorities;
mod certificates;
mod heartbeats;
mod limits;
mod raw_client;
mod renewal;
mod requests;
mod searches;
mod stopping;
#[allow(unreachable_pub, reason = "shared by the modules of this test")]
mod support;
