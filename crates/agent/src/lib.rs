//! The agent.

#[allow(dead_code, unused_imports)] // until the shell uses them
mod hands;
#[allow(dead_code)] // until the shell uses them
mod os;
