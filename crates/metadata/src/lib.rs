//! The metadata endpoint: what a machine asks for its events, its approvals and itself.
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
//! Limits and time-outs are counted in real time, whatever clock the rules run on; only `Date` shows that clock.

mod answer;
mod body;
mod connection;
mod connections;
mod door;
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod memory;
mod patience;
mod perform;
mod rate;
mod request;
mod route;
mod serve;
mod settings;
mod stream;
mod target;
mod threads;
mod token;

pub use door::{Door, Listener, OpenError};
pub use limits::{ConnectionLimits, Limits};
pub use rate::Rate;
pub use serve::Front;
pub use settings::{FirstAnswer, Identity, IdentityToken, Settings};
pub use threads::Threads;
pub use token::{TokenHolder, body as token_body};
