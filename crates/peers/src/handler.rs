//! The trait by which messages reach the server.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;

use forewarn_types::Name;
use hyper::body::Bytes;

use crate::audit_search::{AuditSearch, FoundEntries};
use crate::message::{AuditQuery, Heartbeat, MovedStream, NotOwner, OwnerDecision, ReceivedRequest};

/// Answers messages of other servers. `caller` is the name in the certificate of the caller.
pub trait PeerHandler: Send + Sync + 'static {
    /// Lines of old audit entries.
    type Audit: AuditChunks;

    /// Answers a heartbeat with the state of this server.
    fn heartbeat(&self, caller: &Name, heartbeat: Heartbeat) -> impl Future<Output = Heartbeat> + Send;

    /// Answers a forwarded request. It must not be forwarded again. The future is completed even if the caller hangs
    /// up meanwhile.
    fn request(&self, caller: &Name, request: ReceivedRequest) -> impl Future<Output = RequestAnswer> + Send;

    /// Notes that a stream has another owner.
    fn moved(&self, caller: &Name, moved: MovedStream) -> impl Future<Output = ()> + Send;

    /// Begins to read old audit entries.
    fn audit(
        &self,
        caller: &Name,
        query: AuditQuery,
    ) -> impl Future<Output = Result<Self::Audit, HandlerUnavailable>> + Send;

    /// Searches the audit log of this server, once it contains everything that was committed before.
    fn search(
        &self,
        caller: &Name,
        search: AuditSearch,
    ) -> impl Future<Output = Result<FoundEntries, HandlerUnavailable>> + Send;

    /// Notes a connection that was rejected, for the log and for metrics.
    fn rejected(&self, connection: &RejectedConnection) {
        let _ = connection;
    }
}

/// A connection that was rejected before any message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedConnection {
    /// Address of the caller.
    pub from: SocketAddr,
    /// The reason.
    pub reason: String,
}

/// Lines of old audit entries, in chunks.
pub trait AuditChunks: Send + 'static {
    /// The next chunk: whole lines, each with its line feed. `None` after the last one.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, ChunksBroken>> + Send;
}

/// Chunks end before the last one. The caller sees that its copy is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lines end early")]
pub struct ChunksBroken;

/// This server cannot answer now: it starts or stops, or does not reach the engine. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerUnavailable(
    /// The reason.
    pub String,
);

/// The answer to a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// This server owns the stream and has decided.
    Decided(Box<OwnerDecision>),
    /// This server does not own the stream.
    NotOwner(NotOwner),
    /// This server cannot answer now. Nothing has changed.
    Unavailable(HandlerUnavailable),
}

impl fmt::Display for HandlerUnavailable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
