//! Reads Scheduled Events from inside a virtual machine: finds the endpoint, waits for news, approves.
//!
//! It works against Forewarn and against the cloud's own endpoint alike. An agent in ten lines:
//!
//! ```no_run
//! use forewarn_client::{Client, Status, Word};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::find().await?;
//! let me = client.name().await?;
//! loop {
//!     let seen = client.next().await;
//!     let mine = seen.document.events.iter().filter(|event| event.resources == [me.as_str()]);
//!     // A status that this client does not know is not approved.
//!     let scheduled = mine.filter(|event| event.status == Word::Known(Status::Scheduled));
//!     let scheduled: Vec<_> = scheduled.map(|event| event.id).collect();
//!     // Here a real one drains, saves, hands over.
//!     client.approve(&scheduled).await?;
//! }
//! # }
//! ```
//!
//! | to | |
//! |---|---|
//! | find the endpoint | [`Search`]: a setting, `SCHEDULEDEVENTSIP`, `169.254.169.254`, DHCP option 245 |
//! | ask once | [`Client::poll`], [`Client::approve`], [`Client::name`], [`Client::members`] |
//! | go on asking | [`Client::next`], or [`Client::turn`] by [`Client::turn`] where failures matter |
//! | know how much time is left | [`Sighting::left`] |
//! | ask others, such as a webhook | [`http`] |
//!
//! Where failures matter, one turn follows the other. A turn waits as long as is good for the endpoint, and asks once; to drop it
//! half-way, in a `select!`, loses nothing:
//!
//! ```no_run
//! use forewarn_client::{Client, Endpoint, Turn};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::new(Endpoint::parse("http://169.254.169.254")?);
//! loop {
//!     match client.turn().await {
//!         Turn::News(seen) => {
//!             for event in &seen.document.events {
//!                 println!("{}: {:?} of {:?}, {:?} left", event.id, event.kind, event.resources, seen.left(event));
//!             }
//!         }
//!         Turn::Quiet { .. } => {}
//!         Turn::Failed { error, pause } => eprintln!("{error}; trying again in {pause:?}"),
//!     }
//! }
//! # }
//! ```
//!
//! What it keeps to, so that its callers need not:
//!
//! - No request goes through a proxy, whatever the environment says, and no redirect is followed.
//! - The newest edition is asked for first; an endpoint that does not know it is asked for an older one.
//! - Where the endpoint can wait (Forewarn's can), news is here at once and hardly anything is asked; elsewhere, once a second.
//! - After failures, pauses grow and differ from machine to machine; `Retry-After` is heeded; nobody gives up.
//! - How long an answer may take, and how long it may be, is limited. A document with unknown words in it is read all the same,
//!   and an event that cannot be read does not hide the others ([`ReadDocument::malformed`]).
//!
//! What is deliberately absent: deciding what to do about an event, and remembering what was done. What the caller owes: a runtime
//! of tokio with time and I/O, and [`Sighting::left`] instead of a look at its own clock, which may be wrong.

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
mod search;
mod turn;

pub use client::{Client, News, Sighting};
pub use endpoint::{BadEndpoint, Endpoint};
pub use error::Error;
#[doc(inline)]
pub use forewarn_http_client as http;
pub use forewarn_imds::{Edition, MalformedEvent, ReadDocument, ReadEvent, Status, Unreadable, Word};
pub use forewarn_types::{EventId, EventKind, EventSource, Timestamp};
pub use search::{Found, How, NotFound, Search, Tried, VARIABLE};
pub use turn::Turn;
