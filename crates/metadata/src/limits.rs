//! Limits of the endpoint, per machine and per connection.

use std::time::Duration;

use crate::rate::Rate;

/// Limits of one machine. A machine that exceeds them affects only itself. Unknown callers share the limits of one
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate of its requests.
    pub rate: Rate,
    /// Open connections. One more is accepted and closed. Not counted where only the path identifies the caller.
    pub connections: u32,
    pub in_flight: u32,
    /// Requests that wait for a change of the document.
    pub waiting: u32,
    /// Rate of its rejected requests. Every further rejection is delayed.
    pub errors: Rate,
    /// Delay of such a rejection.
    pub error_delay: Duration,
}

/// The limits of a public cloud.
impl Default for Limits {
    fn default() -> Self {
        Self {
            rate: Rate::default(),
            connections: 16,
            in_flight: 8,
            waiting: 4,
            errors: Rate { per_second: 20, burst: 20 },
            error_delay: Duration::from_secs(1),
        }
    }
}

/// Number of connections, and the deadlines of each. They always apply, even without limits per machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections of one endpoint at once. One more is accepted and closed.
    pub max: u32,
    /// Maximum silence between two requests.
    pub idle: Duration,
    /// Maximum time of a head, from its first byte.
    pub head: Duration,
    /// Maximum time of a body, after its head.
    pub body: Duration,
    /// Maximum time for the client to read a response.
    pub write: Duration,
    /// Age after which a connection is closed instead of waiting for another request.
    pub life: Duration,
    /// Requests of one connection.
    pub requests: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max: 16_384,
            idle: Duration::from_secs(30),
            head: Duration::from_secs(5),
            body: Duration::from_secs(5),
            write: Duration::from_secs(10),
            life: Duration::from_mins(10),
            requests: 1_000,
        }
    }
}
