//! Azure Resource Manager, seen from outside.

#![cfg(test)]

mod sending;
mod showing;
mod template_functions;
mod template_limits;
mod templates;
#[path = "../../../control/tests/control/town.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod town;
