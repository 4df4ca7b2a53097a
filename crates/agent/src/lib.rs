//! The agent inside a virtual machine: watches Scheduled Events, prepares, waits for peers, approves, and undoes.
//!
//! Decisions are made in `forewarn-agent-core`, which is pure; this crate performs them. One task owns the watcher, and
//! all other tasks send it their results.
//!
//! ```text
//!   endpoint ──▶ run/poller ─────┐                       ┌─▶ memory (stored first)
//!   hooks    ──▶ run/hook_tasks ─┼─▶ run/agent: Watcher ─┼─▶ run/hook_tasks ──▶ hooks
//!   peers    ──▶ peers ──────────┘                       ├─▶ approvals
//!                                                        └─▶ event_log, metrics, status_board ──▶ web
//! ```
//!
//! The library exists for the program and its tests; it is not a public interface. To write another agent, use
//! `forewarn-client`.

mod clock;
mod commands;
mod config;
mod hooks;
mod memory;
mod metrics;
mod obstacles;
mod os;
mod peers;
mod random;
mod run;
mod status;
mod status_board;
mod web;

pub use commands::main;
