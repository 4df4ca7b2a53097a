//! Push messages: what webhooks receive. CloudEvents 1.0, the schema of Event Grid, and texts for chats.
//!
//! ```text
//! Change ──notices──▶ Notice, in the audit log ──pushes──▶ Push ──▶ cloud_event, event_grid: JSON
//!                                                           └─────▶ slack, teams, pagerduty, plain_text
//! ```
//!
//! A push message has the fields of an event in a VM's document, and also its end: `Completed` or `Canceled`. Messages
//! about hosts that are ready for the work of a person have a type of their own.

mod chat;
mod host;
mod message;

pub use crate::audit::host_notice::{HostNotice, HostNoticeStatus};
pub use crate::audit::notice::{Notice, NoticeContext, NoticeStatus, Owner, notices};
pub use chat::{pagerduty, pagerduty_end, plain_text, slack, teams};
pub use host::{HOST_EVENT_TYPE, HostPush};
pub use message::{
    EVENT_TYPE, Push, PushContent, VALIDATION_BYTES_MAX, VALIDATION_TYPE, is_validated, pushes, sample,
    validation,
};
