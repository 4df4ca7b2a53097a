//! The settings of a server in a realm.

use std::net::SocketAddr;

use forewarn_lifecycle::Name;
use forewarn_realm::{Engine, Keyspace};

/// The place of a server in a realm.
#[derive(Clone, Debug)]
pub struct RealmPlan {
    /// Name of this server, unique in the realm.
    pub name: Name,
    pub engine: Engine,
    /// The keys of the realm in the engine.
    pub keys: Keyspace,
    /// Address of the listener for other servers.
    pub listen: SocketAddr,
    /// Address by which other servers reach this one; default: the listener.
    pub advertise: Option<String>,
    /// Speed of the clock, for tests: a new realm gets it, and an existing one must have it. None: that of the realm, or
    /// the real clock.
    pub clock_speed: Option<u32>,
    /// Zone of the server.
    pub zone: Option<String>,
}
