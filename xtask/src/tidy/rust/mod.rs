//! Rust sources, read as text: tokens, modules, and the names that modules take from each other.
//!
//! This is no parser of Rust. It knows comments, literals, brackets, items of a module, `use` and paths; that is enough
//! for the checks here, and needs no compiler.

mod functions;
mod imports;
mod modules;
mod names;
mod tokens;

pub(super) use functions::{Function, functions};
pub(super) use modules::{CrateSource, Module};
pub(super) use names::references;
pub(crate) use tokens::{Token, after_group, tokens};
