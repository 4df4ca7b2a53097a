//! The agent as a program: against a real server, and against endpoints that are played.

#[path = "../../../forewarn/tests/harness/mod.rs"]
mod harness;

mod commands;
mod events;
mod hooks;
mod lives;
mod place;
mod played;
mod rehearsals;
mod settings;
mod supervised;
mod troubles;
