//! The process of this server, and those of others: work of a process that has ended was interrupted.

use super::ControlHandle;
use crate::realm::ServerProcess;

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
