//! Limits of sizes and times.

use std::time::Duration;

/// Maximum bytes of a forwarded request, and of its answer: fleet files are large.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum bytes of a heartbeat.
pub const HEARTBEAT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum tenants whose last polls a heartbeat asks about.
pub const POLL_QUESTIONS_MAX: usize = 2_000;

/// Maximum bytes of a query of the audit log.
pub(crate) const SEARCH_BYTES_MAX: usize = 1024 * 1024;

/// Maximum bytes of other messages.
pub(crate) const SMALL_BYTES_MAX: usize = 64 * 1024;

/// Maximum bytes of the head of a message.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Maximum bytes of one line of audit entries.
pub const AUDIT_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Age at which a connection is replaced, so that a certificate that has expired or was replaced goes out of use.
pub(crate) const CONNECTION_AGE_MAX: Duration = Duration::from_secs(3_600);

/// Limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// Maximum time until the TCP connection is open.
    pub connect: Duration,
    /// Maximum time until both sides have accepted each other's certificates, after that.
    pub handshake: Duration,
    /// Maximum time from the sending of a request to the end of its answer.
    pub answer: Duration,
    /// Maximum time between two pieces of a long answer.
    pub piece: Duration,
    /// Maximum time that a request waits until fewer are in flight.
    pub queue: Duration,
    /// Maximum requests in flight, each on a connection of its own.
    pub in_flight: usize,
    /// Maximum time from the sending of a query of the audit log to the end of its answer.
    pub search: Duration,
    /// Maximum queries of the audit log in flight, besides requests: these do not wait for them.
    pub searches: usize,
    /// Time after which an unused connection is closed. The listener must keep it for longer.
    pub idle: Duration,
}

/// Limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Maximum open connections.
    pub connections: usize,
    /// Maximum time of a TLS handshake.
    pub handshake: Duration,
    /// Maximum time until the head of the next message has arrived.
    pub head: Duration,
    /// Maximum time until the body of a message has arrived.
    pub body: Duration,
    /// Maximum time in which the caller takes a piece of a long answer.
    pub piece: Duration,
    /// Maximum time of the handler of a message. A request that takes longer may still be carried out.
    pub handler: Duration,
    /// Maximum time until requests in flight are answered after the listener has been stopped.
    pub stop: Duration,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(300),
            handshake: Duration::from_millis(700),
            answer: Duration::from_secs(60),
            piece: Duration::from_secs(30),
            queue: Duration::from_secs(3),
            in_flight: 8,
            search: Duration::from_secs(10),
            searches: 4,
            idle: Duration::from_secs(10),
        }
    }
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            handshake: Duration::from_secs(2),
            head: Duration::from_secs(60),
            body: Duration::from_secs(30),
            piece: Duration::from_secs(30),
            handler: Duration::from_secs(60),
            stop: Duration::from_secs(5),
        }
    }
}
