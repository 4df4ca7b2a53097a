//! Reads Scheduled Events from inside a virtual machine: finds the endpoint, waits for news, approves.
//!
//! It works against Forewarn and against the cloud's own endpoint alike. An agent in ten lines:
//!
//! ```no_run
//! use forewarn_client::Client;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::find().await?;
//! let me = client.name().await?;
//! loop {
//!     let seen = client.next().await;
//!     let mine = seen.document.events.iter().filter(|event| event.resources == [me.as_str()]);
//!     let scheduled: Vec<_> = mine.filter(|event| event.not_before.is_some()).map(|event| event.id).collect();
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
//!
//! What is deliberately absent: deciding what to do about an event, and remembering what was done. What the caller owes: a runtime
//! of tokio, and counting `NotBefore` − [`Sighting::date`] from [`Sighting::received`] instead of trusting its own clock.

pub mod backoff;
mod client;
mod dhcp;
mod editions;
mod endpoint;
mod error;
mod lease;
mod search;
mod turn;

pub use client::{Client, News, Sighting};
pub use endpoint::{BadEndpoint, Endpoint};
pub use error::Error;
pub use forewarn_line as http;
pub use search::{Found, How, NotFound, Search, Tried, VARIABLE};
pub use turn::Turn;
