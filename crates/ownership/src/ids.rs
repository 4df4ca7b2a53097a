//! Names and numbers of the protocol.

use std::fmt;

use forewarn_types::{BadName, Name};

/// The mod revision of a key in the engine: it grows with every write of that key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub i64);

impl Revision {
    /// The revision of a key that does not exist.
    pub const ABSENT: Self = Self(0);
}

/// The number of changes of the owner of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term of the next owner.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// The id of one transaction. It is chosen at random, so no other transaction of any server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub [u8; 16]);

/// The name of a server of a realm, unique in the realm.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Name);

impl ServerName {
    /// Checks a text and makes it the name of a server.
    ///
    /// # Errors
    /// The text is not a [`Name`].
    pub fn new(text: &str) -> Result<Self, BadName> {
        Name::new(text).map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl From<ServerName> for Name {
    fn from(ServerName(name): ServerName) -> Self {
        name
    }
}

impl From<Name> for ServerName {
    fn from(name: Name) -> Self {
        Self(name)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

/// The id of one boot of a computer. Servers with the same id must read the same [`Uptime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub [u8; 16]);

/// Time since the boot of this computer, suspension included, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uptime(u64);

impl Uptime {
    /// The time that many milliseconds after the boot.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the boot.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// This time, later by that many milliseconds.
    #[must_use]
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// This time, earlier by that many milliseconds, but not before the boot.
    #[must_use]
    pub const fn minus(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Milliseconds from `earlier` to this time; zero if this time is the earlier one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
