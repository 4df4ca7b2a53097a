//! Ids, names, times and the nouns of an event: the values that every part of Forewarn shares.
//!
//! The rules, the formats of the metadata endpoint, the control plane and the agent are all built on these types, so
//! none of them needs another one to name an event or a time. No I/O, no clock, no randomness.
//!
//! ```
//! use forewarn_types::{EventKind, Moment, Span};
//!
//! let kind: EventKind = "Reboot".parse()?;
//! let notice: Span = "15m".parse()?;
//! let announced: Moment = "2026-01-01T00:00:00Z".parse()?;
//! assert_eq!(Moment(announced.0.plus(notice.0)).to_string(), "2026-01-01T00:15:00Z");
//! assert_eq!(kind.as_str(), "Reboot");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod base64url;
mod byte_order_mark;
mod event;
mod fault;
mod file_error;
mod flexible_suffix;
mod ids;
pub mod limits;
pub mod list;
mod names;
mod out_of_range;
#[cfg(feature = "schema")]
mod schema;
mod span;
mod tcp_address;
mod time;
mod unique;

pub use byte_order_mark::{BYTE_ORDER_MARK_BYTES, without_mark};
pub use event::{
    Announcement, Approval, Approver, Event, EventKind, EventSource, NotAnEventKind, Phase, Reason,
    StartCause,
};
pub use fault::{
    FAULT_REQUESTS_MAX, FAULTS_MAX, FaultAnswer, FaultStatus, FaultedRequest, HIDE_MAX, NotAFault, SLOW_MAX,
};
pub use file_error::plain_file_error;
pub use flexible_suffix::FLEXIBLE_INSTANCES;
pub use ids::{
    ActionName, ClusterId, EventId, FaultDomain, HostId, MachineId, MaintenanceId, RolloutId, ScaleSetId,
    Seed, TenantId, UpdateDomain, Zone,
};
pub use names::{BadName, Name, caseless_hash, derived_name, derived_names, instance_digits};
pub use out_of_range::OutOfRange;
pub use span::{Moment, NotAMoment, NotASpan, Span, parse_duration, show_duration};
pub use tcp_address::{NotATcpAddress, TcpAddress};
pub use time::{Now, Steady, Timestamp};
pub use unique::Unique;
