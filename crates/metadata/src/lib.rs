//! The metadata endpoint: virtual machines poll it for their events and for their instance metadata, and approve
//! events.
//!
//! A small HTTP/1.1 server of its own: it accepts what clients of Scheduled Events send, and rejects everything else.
//! It uses no framework, serves only the five paths below `/metadata`, and validates every input in one fixed order
//! before it uses it. A poll parses one head, looks up the caller and its document, and writes prepared bytes once.
//!
//! ```text
//!   bytes ──request──▶ Head ──identity──▶ Caller ──route──▶ Action ──perform──▶ Response ──write──▶ bytes
//!                        └───────────── Problem ◀────────────┘                     ▲
//!                                          └───────────────────────────────────────┘
//! ```
//!
//! The control plane publishes its state; the [`Directory`] has the callers and documents that were made from it. A poll
//! reads them and touches nothing else. An approval goes to the [`ControlPlane`].
//!
//! Limits and time-outs use real time, whatever clock the rules run on; only `Date` shows that clock.

mod body;
mod callers;
mod connection;
mod connections;
mod control_plane;
mod counts;
mod deadlines;
mod endpoint;
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod listen_address;
mod listener;
mod perform;
mod published;
mod rate;
mod request;
mod request_cache;
mod response;
mod response_rules;
mod route;
mod serve;
mod settings;
mod socket_file;
mod stream;
mod target;
mod threads;
mod throttle;

pub use callers::{
    Caller, CallerId, Directory, DirectoryChanges, Fault, FaultTable, FaultTarget, Poll, PublishedState,
    TooManyFaults,
};
pub use control_plane::{ApprovalError, ControlPlane, EnrolError, PollReportError};
pub use counts::EndpointCounts;
pub use endpoint::Endpoint;
pub use limits::{ConnectionLimits, Limits};
pub use listen_address::{ListenAddress, ListenError};
pub use listener::Listener;
pub use published::{DocumentSlot, PollDuty, PreparedResponse, PublishedDocument, SERVER};
pub use rate::Rate;
pub use settings::{FirstAnswer, Identity, IdentityToken, Settings};
pub use socket_file::SocketFile;
pub use threads::Threads;
pub use throttle::Throttle;
