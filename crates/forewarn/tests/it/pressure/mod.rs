//! The program under pressure: clients that hold connections, send huge or endless headers, take every file descriptor; proxies in
//! front of it, and IPv6. Every attack comes from loopback and is bounded.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod attack;
mod descriptors;
mod ipv6;
mod memory;
mod place;
#[cfg(target_os = "linux")]
mod proxies;
mod slow;
mod tokens;
