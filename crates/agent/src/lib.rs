//! The agent inside a virtual machine: watches Scheduled Events, prepares, waits for its peers, approves, and undoes.
//!
//! What is to be done is decided in `forewarn-agent-core`, which does nothing itself; here is everything around it. One task owns the
//! watcher; whatever else happens tells it so.
//!
//! ```text
//!   endpoint ──▶ run/link ─┐                       ┌─▶ memory (kept first)
//!   hooks    ──▶ run/crew ─┼─▶ run/agent: Watcher ─┼─▶ run/crew ──▶ hands   (hooks)
//!   peers    ──▶ peers ────┘                       ├─▶ approvals
//!                                                  └─▶ notes: log, event log, metrics, board ──▶ web
//! ```
//!
//! The library is there so that the program is small and tests can reach inside; it is no interface for others. Those who want to
//! write an agent of their own take `forewarn-client`.

mod board;
mod chance;
mod clock;
mod commands;
mod config;
mod hands;
mod memory;
mod metrics;
mod os;
mod peers;
mod run;
mod status;
mod web;

pub use commands::main;
