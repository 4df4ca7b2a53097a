//! Processes of servers: a server of a realm can tell work of another live server from work that was interrupted.

use forewarn_lifecycle::Name;
use forewarn_ownership::ServerName;
use serde::{Deserialize, Serialize};

use super::view::RealmView;

/// A process of a server of a realm. After a restart, the server is another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProcess {
    pub(crate) server: Name,
    /// A random number.
    pub(crate) number: u64,
}

impl RealmView {
    /// Returns false if a process has ended, or its server has lost its key.
    pub(crate) fn has_process(&self, ServerProcess { server, number }: &ServerProcess) -> bool {
        // A server that is no member itself does not know the others.
        let is_member = self.servers.contains_key(self.peers.own());
        let record = self.servers.get(&ServerName::from(server.clone()));
        !is_member || record.is_some_and(|record| record.process == Some(*number))
    }
}
