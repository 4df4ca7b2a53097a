//! The metadata endpoint, seen from inside a machine: raw bytes over TCP, against a whole server with a frozen clock.

#![cfg(test)]

mod approvals;
mod callers;
mod checks;
mod connections;
mod documents;
mod doors;
mod enrolment;
mod hostile;
mod instance;
mod limits;
mod polls;
mod recorded;
mod support;
mod telemetry;
mod threads;
