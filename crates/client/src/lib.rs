//! Reads Scheduled Events from inside a virtual machine.

pub mod http;
