//! The agent as a program: against a real server, and against endpoints that are played.
//!
//! | what | tests |
//! |---|---|
//! | from announcement to undo; cancelled; of others; dry run | `events` |
//! | killed, stopped, restarted, damaged: each event once | `lives` |
//! | hooks that fail, hang, come too late, lie in directories | `hooks` |
//! | an endpoint that is down, empty, or does not know the name; events that cannot be read | `troubles` |
//! | who approves where several are named; strangers that hold connections open; load balancers | `peers` |
//! | settings that are wrong, or read again | `settings` |
//! | commands of people | `commands`, `rehearsals` |
//! | systemd and its journal | `supervised` |

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

#[path = "../../../forewarn/tests/harness/mod.rs"]
mod harness;

mod commands;
mod events;
mod flood;
mod hooks;
mod lives;
mod peers;
mod place;
mod played;
mod rehearsals;
mod settings;
mod supervised;
mod troubles;
