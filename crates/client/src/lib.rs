//! Client for Scheduled Events inside a virtual machine: finds the endpoint, polls for events, approves them.
//!
//! Works with Forewarn and with the cloud's own endpoint. An agent in ten lines:
//!
//! ```no_run
//! use forewarn_client::{Client, Status, Word};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::find().await?;
//! let me = client.name().await?;
//! loop {
//!     let observation = client.next().await;
//!     let mine = observation.document.events.iter().filter(|event| event.resources == [me.as_str()]);
//!     // A status that this client does not know is not approved.
//!     let scheduled = mine.filter(|event| event.status == Word::Known(Status::Scheduled));
//!     let scheduled: Vec<_> = scheduled.map(|event| event.id).collect();
//!     // A real agent drains, saves or hands over here.
//!     client.approve(&scheduled).await?;
//! }
//! # }
//! ```
//!
//! | task | API |
//! |---|---|
//! | find the endpoint | [`Search`]: a setting, `SCHEDULEDEVENTSIP`, `169.254.169.254`, DHCP option 245 |
//! | one request | [`Client::poll`], [`Client::approve`], [`Client::name`], [`Client::members`] |
//! | poll continuously | [`Client::next`], or [`Client::poll_step`] to handle failures |
//! | know how much time is left | [`Observation::left`] |
//! | other requests, such as webhooks | [`http`] |
//!
//! To handle failures, call [`Client::poll_step`] in a loop. Each call waits until a poll is due and polls once. It is
//! cancel safe in a `select!`:
//!
//! ```no_run
//! use forewarn_client::{Client, Endpoint, PollStep};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::new(Endpoint::parse("http://169.254.169.254")?);
//! loop {
//!     match client.poll_step().await {
//!         PollStep::Changed(observation) => {
//!             for event in &observation.document.events {
//!                 println!("{}: {:?} of {:?}, {:?} left", event.id, event.kind, event.resources, observation.left(event));
//!             }
//!         }
//!         PollStep::Unchanged { .. } => {}
//!         PollStep::Failed { error, pause } => eprintln!("{error}; trying again in {pause:?}"),
//!     }
//! }
//! # }
//! ```
//!
//! Guarantees:
//!
//! - No request goes through a proxy, whatever the environment says, and no redirect is followed.
//! - The newest edition is requested first, then older ones if the endpoint does not support it.
//! - With long polls (Forewarn supports them) changes arrive at once; otherwise the client polls once a second.
//! - After failures, pauses grow and differ between machines; `Retry-After` is respected; a client never gives up.
//! - Time and size of a response are limited. A document with unknown values is still parsed, and a malformed event
//!   does not hide the others ([`ReadDocument::malformed`]).
//!
//! The client neither decides what to do about an event nor stores anything. The caller provides a tokio runtime with
//! time and I/O, and uses [`Observation::left`] instead of the local clock, which may be wrong.

#![warn(missing_docs)]

pub mod backoff;
mod client;
mod dhcp;
mod editions;
mod endpoint;
mod error;
mod headers;
mod lease;
mod poll_schedule;
mod poll_step;
mod search;

pub use client::{Client, Observation, PollResponse};
pub use endpoint::{BadEndpoint, Endpoint};
pub use error::Error;
#[doc(inline)]
pub use forewarn_http_client as http;
pub use forewarn_imds::{Edition, MalformedEvent, ReadDocument, ReadEvent, Status, Unreadable, Word};
pub use forewarn_types::{EventId, EventKind, EventSource, Timestamp};
pub use poll_step::PollStep;
pub use search::{DiscoverySource, FailedLocation, Found, NotFound, Search, VARIABLE};
