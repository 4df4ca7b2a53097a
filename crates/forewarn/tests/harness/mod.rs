//! What every test of the program needs: a server of its own, a way to send it bytes, and documents written down a second time.

#![allow(dead_code, unused_imports, reason = "no set of tests needs all of it")]

pub(crate) mod expected;
pub(crate) mod http;
pub(crate) mod programs;
pub(crate) mod server;

pub(crate) use expected::{EDITIONS, Event, document};
pub(crate) use http::{Answer, Line, NEWEST, approve, ask, get, post, request};
pub(crate) use server::Server;

use std::time::{Duration, Instant};

/// Longer than anything here takes on the slowest machine. Whoever waits for it has failed already.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to see.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
