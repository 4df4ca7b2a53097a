//! The metadata endpoint as a machine sees it: raw bytes over TCP, against a server with a frozen clock.

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
mod returns;
mod support;
mod telemetry;
mod threads;
