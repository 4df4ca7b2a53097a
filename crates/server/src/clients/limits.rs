//! Limits of one listener for operators or for clients of an extension.

use std::time::Duration;

use super::stage::Stage;

/// Maximum bytes of a request's header, request line included. A longer one gets 431.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Maximum header fields of a request. More get 431.
pub(crate) const HEAD_FIELDS_MAX: usize = 100;

/// Maximum pending TLS handshakes of a listener. One more ends the oldest.
pub(crate) const HANDSHAKES_MAX: usize = 256;

/// Time in which neither side sends a byte while a request is under way. Streams send a comment more often than this.
pub(crate) const SILENCE_MAX: Duration = Duration::from_mins(5);

/// Limits of one listener. Durations are total: a client that sends a byte now and then gains nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    pub max: u32,
    /// Connections from one address that have not authenticated; IPv6 addresses count by their /64 network, callers of
    /// a Unix socket by their user.
    pub per_address: u32,
    /// Connections that have authenticated with one token, and those of one user of a Unix socket.
    pub per_token: u32,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// Time between two requests, and before the first, on a connection that has not authenticated.
    pub idle: Duration,
    /// The same on a connection that has authenticated.
    pub idle_authenticated: Duration,
    /// Time for a header, from its first byte.
    pub head: Duration,
    /// Time for a body, on a connection that has not authenticated.
    pub body: Duration,
    /// The same on a connection that has authenticated.
    pub body_authenticated: Duration,
    /// Time in which a client has to read a response, on a connection that has not authenticated.
    pub write: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max: 1_536,
            per_address: 64,
            per_token: 1_152,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            idle_authenticated: Duration::from_mins(5),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            body_authenticated: Duration::from_mins(10),
            write: Duration::from_secs(30),
        }
    }
}

impl ClientLimits {
    /// Connections with one token, or of one user: at most three quarters of all, so that another one finds room.
    pub(super) fn per_holder(&self) -> u32 {
        self.per_token.min(self.max - self.max / 4)
    }

    /// Time that a connection may stay in a stage. None where only silence ends it.
    pub(super) const fn time_in(&self, stage: Stage, trust: Trust) -> Option<Duration> {
        match (stage, trust) {
            (Stage::Handshake, Trust::None | Trust::Authenticated) => Some(self.handshake),
            (Stage::New, Trust::None | Trust::Authenticated) | (Stage::Idle, Trust::None) => Some(self.idle),
            (Stage::Idle, Trust::Authenticated) => Some(self.idle_authenticated),
            (Stage::Head, Trust::None | Trust::Authenticated) => Some(self.head),
            (Stage::Body, Trust::None) => Some(self.body),
            (Stage::Body, Trust::Authenticated) => Some(self.body_authenticated),
            (Stage::Response | Stage::Flush, Trust::None) => Some(self.write),
            (Stage::Response | Stage::Flush, Trust::Authenticated)
            | (Stage::Handling, Trust::None | Trust::Authenticated) => None,
        }
    }
}

/// Trust in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// No request on it has authenticated.
    None,
    /// A request on it has authenticated.
    Authenticated,
}
