//! What every test of the program needs: a server of its own, a way to send it bytes, and documents written down a second time.

#![allow(dead_code, unused_imports, reason = "no set of tests needs all of it")]

pub(crate) mod expected;
pub(crate) mod http;
#[cfg(target_os = "linux")]
pub(crate) mod network;
pub(crate) mod patience;
pub(crate) mod programs;
pub(crate) mod server;
pub(crate) mod strict;

pub(crate) use expected::{EDITIONS, Event, document};
pub(crate) use http::{Answer, Line, NEWEST, approve, ask, get, post, request};
pub(crate) use patience::{PATIENCE, until};
pub(crate) use server::Server;
