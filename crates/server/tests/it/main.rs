//! The server without its HTTP front for operators: commands, clusters, audit log, driver, metadata endpoint.

#![cfg(test)]

mod clusters;
mod driver;
mod kept;
mod metadata;
mod orders;
mod trail;
