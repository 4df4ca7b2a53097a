//! Explanations and previews, seen from outside.

#![cfg(test)]

mod explanations;
mod previews;
mod tale;
#[path = "../../../control/tests/control/town.rs"]
#[allow(dead_code, reason = "shared with the tests of the control plane")]
mod town;
mod troubles;
