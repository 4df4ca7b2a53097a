//! What clusters are called inside: numbers that are never used again. People call them by a name, which may change.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A cluster of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterId(pub u32);

impl ClusterId {
    /// The cluster that is meant when none is named. It is always there.
    pub const DEFAULT: Self = Self(0);

    /// What that one is called, for ever.
    pub const DEFAULT_NAME: &'static str = "default";
}

impl fmt::Display for ClusterId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}
