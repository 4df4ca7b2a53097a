//! The client against a server that answers exactly what a test says, byte for byte.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod documents;
mod others;
mod proxies;
mod rhythm;
mod script;
