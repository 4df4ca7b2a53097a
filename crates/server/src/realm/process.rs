//! Processes of servers: a server of a realm can tell work of another live server from work that was interrupted.

use forewarn_lifecycle::Name;
use forewarn_ownership::ServerName;
use serde::{Deserialize, Serialize};

use super::view::RealmView;
use crate::control_handle::ControlHandle;

/// A process of a server of a realm. After a restart, the server is another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProcess {
    pub(crate) server: Name,
    /// A random number.
    pub(crate) number: u64,
}

impl ControlHandle {
    /// The process of this server. None outside of a realm.
    #[must_use]
    pub fn process(&self) -> Option<ServerProcess> {
        self.realm().map(|realm| ServerProcess { server: realm.own.clone(), number: realm.process })
    }

    /// Returns false if a process has ended, or its server has not reached the engine for seconds.
    #[must_use]
    pub fn is_live(&self, process: &ServerProcess) -> bool {
        let is_own = || self.process().as_ref() == Some(process);
        self.realm_admin().is_ok_and(|admin| is_own() || admin.view.lock().has_process(process))
    }
}

impl RealmView {
    fn has_process(&self, ServerProcess { server, number }: &ServerProcess) -> bool {
        // A server that is no member itself does not know the others.
        let is_member = self.servers.contains_key(self.peers.own());
        let record = self.servers.get(&ServerName::from(server.clone()));
        !is_member || record.is_some_and(|record| record.process == Some(*number))
    }
}
