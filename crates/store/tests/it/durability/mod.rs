//! What was answered is there, whatever happens to the process, the machine or the disk.
//!
//! The tests here start this very program again as a writer ([`writer`]), and then kill it, trace it, or take its disk away.
//! Those that need root or strace are ignored; `cargo xtask test` runs them in a step of their own.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod damage;
mod disk;
mod faults;
mod kill;
mod lost;
mod power;
mod trace;
mod writer;
