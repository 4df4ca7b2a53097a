//! Azure Resource Manager: what its clients send, and what they are shown. No I/O, no HTTP: values in, values out.
//!
//! ```text
//!   what a client sends ──▶ merged, made canonical ──▶ what the rules must know of it ──▶ commands by name
//!                                    │
//!   what a client is shown ◀── kept as it is ◀── and what the rules know better
//! ```
//!
//! A body is kept as its client wrote it, with what nobody here understands; the fleet is the truth where it knows more.

pub mod deployment;
mod error;
mod id;
mod images;
pub mod network;
pub mod providers;
pub mod sizes;
pub mod template;
mod version;

pub use error::ArmError;
pub use id::{GroupId, ResourceId};
pub use images::{IMAGE_VERSION, Image};
pub use version::{ApiVersion, BadVersion};
