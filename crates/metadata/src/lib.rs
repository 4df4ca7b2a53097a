//! The metadata endpoint: virtual machines ask it for their events and for facts about themselves, and approve events.
//!
//! A small HTTP/1.1 front of its own: it understands what the clients of Scheduled Events send, and refuses everything
//! else. There is no general framework, no way to reach anything but the five paths below `/metadata`, and nothing that a
//! caller sends is believed before it was checked, in one fixed order. A poll is: parse one head, find the caller, find the
//! document, write prepared bytes once.
//!
//! ```text
//!   bytes ──request──▶ Head ──identity──▶ Caller ──route──▶ Asked ──perform──▶ Answer ──answer──▶ bytes
//!                        └───────────── Rejection ◀───────────┘                  ▲
//!                                           └────────────────────────────────────┘
//! ```
//!
//! The control plane publishes callers and documents in the [`Directory`]; a poll reads them and touches nothing else. An
//! approval goes to the [`ControlPlane`].
//!
//! Limits and time-outs are counted in real time, whatever clock the rules run on; only `Date` shows that clock.

mod answer;
mod body;
mod connection;
mod connections;
mod control_plane;
mod counts;
mod directory;
mod door;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod listener;
mod load;
mod memory;
mod patience;
mod perform;
mod polls;
mod published;
mod rate;
mod request;
mod route;
mod serve;
mod settings;
mod share;
mod socket_file;
mod stream;
mod target;
mod terms;
mod threads;
mod throttle;

pub use control_plane::{ApprovalError, ControlPlane, EnrolError};
pub use counts::EndpointCounts;
pub use directory::{Caller, Directory};
pub use door::{Door, OpenError};
pub use front::Front;
pub use limits::{ConnectionLimits, Limits};
pub use listener::Listener;
pub use polls::Poll;
pub use published::{Prepared, Published, SERVER, Slot};
pub use rate::Rate;
pub use settings::{FirstAnswer, Identity, IdentityToken, Settings};
pub use socket_file::SocketFile;
pub use threads::Threads;
pub use throttle::Throttle;
