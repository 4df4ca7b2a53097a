//! Another server of the realm.

use forewarn_types::Name;

/// Another server of the realm, and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, which its certificate must have.
    pub name: Name,
    /// Host name or address, and port: `10.0.0.2:7443`, `[::1]:7443`, `a.example:7443`. Looked up for each connection.
    pub address: String,
}
