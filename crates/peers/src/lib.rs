//! Connections between the servers of a realm: mutual TLS, heartbeats, forwarded requests.
//!
//! ```text
//!   PeerIdentity: certificate of this server, renewed in place ──▶ listener and clients
//!
//!   Heartbeats ──┐                                    ┌── PeerListener ──▶ PeerHandler (the server implements it)
//!                ├── HTTP/1.1 over TLS 1.3, JSON ─────┤
//!   PeerClient ──┘   POST /peer/v1/heartbeat          └── the caller's name is that of its certificate
//!                    POST /peer/v1/request
//!                    POST /peer/v1/moved
//!                    GET  /peer/v1/audit?stream=&after=
//!                    POST /peer/v1/audit/search
//! ```
//!
//! This crate has the transport and the messages. It does not decide which server is suspected or owns a stream, and
//! holds no state of a cluster. Times in messages come from the caller; only timeouts use a clock of this crate.

#![warn(missing_docs)]

mod audit_lines;
mod audit_search;
mod authority;
mod bodies;
mod caller_verifier;
mod certified_name;
mod connection;
mod credentials;
mod error;
mod forwarding;
mod handler;
mod heartbeats;
mod identity;
mod limits;
mod listener;
mod message;
mod peer;
mod peer_client;
mod pool;
mod routes;
mod socket;

pub use audit_lines::AuditLines;
pub use audit_search::{AuditSearch, EntryOrder, FoundEntries};
pub use authority::{CERTIFICATE_LIFE, RealmAuthority};
pub use certified_name::{BadServerName, check_server_name};
pub use credentials::{CertificateError, CredentialFiles, Credentials};
pub use error::PeerError;
pub use forwarding::ForwardOutcome;
pub use handler::{
    AuditChunks, ChunksBroken, HandlerUnavailable, PeerHandler, RejectedConnection, RequestAnswer,
};
pub use heartbeats::{HeartbeatExchange, HeartbeatReport, HeartbeatReturn, HeartbeatTimes, Heartbeats};
pub use identity::PeerIdentity;
pub use limits::{
    AUDIT_LINE_BYTES_MAX, HEARTBEAT_BYTES_MAX, ListenerLimits, POLL_QUESTIONS_MAX, PeerLimits,
    REQUEST_BYTES_MAX,
};
pub use listener::PeerListener;
pub use message::{
    AskedTenants, AuditQuery, HeardTenants, Heartbeat, MovedStream, NotOwner, OwnedStream, OwnerDecision,
    ReceivedRequest, SeenNumbers, ServerDuty,
};
pub use peer::Peer;
pub use peer_client::PeerClient;
