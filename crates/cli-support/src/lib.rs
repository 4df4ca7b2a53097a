//! Code that the programs of this project share for service managers, logs and terminals.
//!
//! `forewarn` and `forewarn-agent` write the same log lines, send the same notifications to systemd, and print the same
//! tables. Nothing here depends on the server or the agent.

#[cfg(test)]
mod captured;
mod expected_value;
pub mod help;
mod json_line;
pub mod log;
pub mod notify;
pub mod output;
mod panic;
pub mod table;
pub mod visible;
pub mod yaml;
