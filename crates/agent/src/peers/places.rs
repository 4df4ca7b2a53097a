//! Settings for finding peers.

use std::collections::BTreeMap;

/// The way in which peers are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerPlaces {
    /// Address and port of each, by name.
    List(BTreeMap<String, String>),
    /// All addresses of a name, and a port.
    Dns(String),
    /// The document of the endpoint names the machines; each listens on its name, a suffix and a port.
    Members {
        /// Added to the name of a machine.
        suffix: String,
        /// Where it listens.
        port: u16,
    },
}
