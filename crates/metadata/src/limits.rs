//! How much of the endpoint one machine may use, and how long a connection may take.

use std::time::Duration;

use crate::rate::Rate;

/// How much of the endpoint one machine may use. A machine that wants more hurts nobody but itself. Callers whom nobody knows
/// have as much as one machine, all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often it may ask.
    pub rate: Rate,
    /// Connections that it may have. One more is taken and closed. Not counted where only a path tells who is calling.
    pub connections: u32,
    /// Requests that may be under way.
    pub in_flight: u32,
    /// Requests that may wait for news.
    pub waiting: u32,
    /// How often it may ask for what it does not get. Every further refusal comes late.
    pub errors: Rate,
    /// How late.
    pub error_delay: Duration,
}

/// What a public cloud allows.
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

/// How many connections there may be, and how long each may take over what. They hold for everybody, limits or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections of one front at once. One more is taken and closed.
    pub max: u32,
    /// How long a connection may be silent between two requests.
    pub idle: Duration,
    /// How long a head may take, from its first byte.
    pub head: Duration,
    /// How long a body may take, after its head.
    pub body: Duration,
    /// How long a caller may take to read an answer.
    pub write: Duration,
    /// How old a connection may be when it begins to wait for another request.
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
