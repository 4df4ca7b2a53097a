//! Faults of the simulated engine: lost, delayed and repeated messages, outages, and watches that miss events.

mod acceptance;
mod answers;
mod random;
mod watches;
