//! How much of the endpoint one machine may use.

use super::rate::Rate;

/// How much of the endpoint one machine may use. A machine that wants more hurts nobody but itself.
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
}

/// What a public cloud allows.
impl Default for Limits {
    fn default() -> Self {
        Self { rate: Rate::default(), connections: 16, in_flight: 8, waiting: 4 }
    }
}
