//! Verdicts on histories that audit entries tell.

mod log;
mod verdicts;
