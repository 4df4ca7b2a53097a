//! What the programs of this project have in common where they meet a supervisor, a log and a terminal.
//!
//! `forewarn` and `forewarn-agent` write the same log lines, tell systemd the same way how it goes, and print tables that look
//! alike. Nothing here knows what a server or an agent does.

#[cfg(test)]
mod captured;
mod json_line;
pub mod log;
pub mod notify;
mod panic;
pub mod table;
pub mod visible;
