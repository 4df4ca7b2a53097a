//! Azure Resource Manager, seen from outside.

#![cfg(test)]

mod sending;
mod showing;
mod template_functions;
mod template_limits;
mod templates;
