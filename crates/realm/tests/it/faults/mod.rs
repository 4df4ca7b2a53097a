//! Faults of the simulated engine: lost, delayed and repeated messages, outages, and watches that miss events.

mod answers;
mod random;
mod watches;
