//! Settings for finding peers.

use std::collections::BTreeMap;

/// The method of discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerDiscovery {
    /// Addresses and ports, by name.
    List(BTreeMap<String, String>),
    /// A DNS name for all addresses, and a port.
    Dns(String),
    /// The endpoint lists the names; a peer is reached at its name, a suffix and a port.
    Members {
        /// Suffix of the host name.
        suffix: String,
        port: u16,
    },
}
