//! Pushes: what those are told who do not ask. CloudEvents 1.0, and the schema of Event Grid.
//!
//! ```text
//!   Change ──notices──▶ Notice, in the trail ──pushes──▶ Push ──▶ cloud_event, event_grid: JSON
//! ```
//!
//! A push says what the document of a machine says of an event, and besides how it ended: `Completed` or `Canceled`.

mod shape;

pub use crate::audit::notice::{Beside, Notice, NoticeStatus, Owner, notices};
pub use shape::{
    EVENT_TYPE, Push, VALIDATION_BYTES_MAX, VALIDATION_TYPE, is_validated, pushes, sample, validation,
};
