//! Helpers for tests of several crates. Never part of a program.
//!
//! | what | where |
//! |---|---|
//! | a cluster that takes commands by name | [`TestCluster`] |
//! | random histories of the shared state | [`shared_state`] |
//! | the program as a server, ended with the test | [`TestServer`] |
//! | directories, with settings for `forewarn serve` or without | [`ServeDir`], [`TestDir`] |
//! | HTTP as bytes; requests of an operator; TLS (feature `tls`) | [`raw_http`], [`operator`], `tls` |
//! | conditions that become true; progress of a process | [`wait_until`], [`io_calls`] |
//! | documents of machines, written a second time | [`documents`] |
//! | machines that are network namespaces | [`network`] |
//! | agents in such machines | [`agents`] |
//! | clusters of etcd | [`etcd`] |
//! | requests of Azure Resource Manager; the command line `az` | [`arm`], [`az`] |
//! | random requests, and a record of what they were promised | [`random_client`] |
//! | every option of a program, with bad values | [`bad_values`] |
//! | a webhook that keeps every request; checks of messages to chats | [`webhook_receiver`], [`chat`] |
//! | JSON schemas | [`json_schema`] |

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::needless_pass_by_value,
    clippy::new_without_default,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "for tests only"
)]

pub mod agents;
pub mod arm;
pub mod az;
pub mod bad_values;
pub mod chat;
mod cluster;
pub mod command;
mod dir;
pub mod documents;
pub mod etcd;
mod json_log;
pub mod json_schema;
pub mod network;
pub mod operator;
pub mod programs;
mod random;
pub mod random_client;
pub mod raw_http;
mod running_command;
mod serve_dir;
pub mod server;
pub mod shared_state;
#[cfg(feature = "tls")]
pub mod tls;
mod wait;
pub mod webhook_receiver;

pub use cluster::TestCluster;
pub use command::{CommandResult, clean_command};
pub use dir::TestDir;
pub use documents::{EDITIONS, Event, document, documents_of_transcript};
pub use json_log::log_objects;
pub use random::Random;
pub use raw_http::{NEWEST, RawConnection, RawResponse, approve, ask, get, post, request};
pub use running_command::RunningCommand;
pub use serve_dir::{SOLO_FLEET, ServeDir};
pub use server::TestServer;
pub use wait::{DEADLINE, io_calls, wait_for_io_calls, wait_until, wait_until_for};
