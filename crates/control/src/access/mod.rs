//! Access: the role and the scope of a caller, and the commands that they allow.

mod permit;
mod role;
mod scope;

pub use permit::{Denied, Permit};
