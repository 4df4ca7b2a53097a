//! The agent as a program: against a real server, and against endpoints that are played.
//!
//! | what | tests |
//! |---|---|
//! | from announcement to undo; cancelled; of others; dry run | `events` |
//! | killed, stopped, restarted, damaged: each event once | `lives` |
//! | hooks that fail, hang, come too late, lie in directories | `hooks` |
//! | an endpoint that is down, empty, or does not know the name | `troubles` |
//! | who approves where several are named; load balancers | `peers` |
//! | settings that are wrong, or read again | `settings` |
//! | commands of people | `commands`, `rehearsals` |
//! | systemd and its journal | `supervised` |

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

#[cfg(test)]
#[path = "../../../forewarn/tests/harness/mod.rs"]
mod harness;

#[cfg(test)]
mod commands;
#[cfg(test)]
mod events;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod place;
#[cfg(test)]
mod played;
#[cfg(test)]
mod rehearsals;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod supervised;
#[cfg(test)]
mod troubles;
