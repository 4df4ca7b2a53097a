//! Faults of a story on a server. They are for programs: requests that the story itself sends as a machine have none.

use std::collections::BTreeSet;

use anyhow::Result;
use forewarn_control::{ClearedFaults, FaultView, MachineView, NewFault};
use forewarn_http_client::Method;

use crate::client::{ApiError, Client};

/// The machines into whose requests the story has injected faults, as `tenant/name`.
#[derive(Debug, Default)]
pub(super) struct StoryFaults {
    machines: BTreeSet<String>,
}

impl StoryFaults {
    /// Injects a fault.
    pub(super) fn inject(&mut self, api: &Client, fault: &NewFault) -> Result<()> {
        let FaultView { machine, .. } = api.post("/v1/faults", fault)?;
        self.machines.extend(machine);
        Ok(())
    }

    /// Sends a request as a machine: its faults are taken away before, and injected again after it.
    pub(super) fn without<T>(
        &self,
        api: &Client,
        machine: &MachineView,
        send: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let name = format!("{}/{}", machine.tenant, machine.name);
        if !self.machines.contains(&name) {
            return send();
        }
        let faults: Vec<FaultView> = api.pages("/v1/faults")?;
        let own = faults.into_iter().filter(|fault| fault.machine.as_ref() == Some(&name));
        let mut lifted = Vec::new();
        for fault in own {
            let path = format!("/v1/faults/{}", fault.id);
            let cleared: Result<ClearedFaults> = api.change(Method::DELETE, &path, None::<&()>);
            match cleared {
                Ok(ClearedFaults { .. }) => lifted.push(fault),
                // A program has used it up meanwhile.
                Err(error) if error.downcast_ref().is_some_and(|error: &ApiError| error.status == 404) => {}
                Err(error) => return Err(error),
            }
        }
        let sent = send();
        for FaultView { machine, webhook, request, answer, left, .. } in lifted {
            let fault = NewFault { machine, webhook, request, next: left, answer };
            let FaultView { .. } = api.post("/v1/faults", &fault)?;
        }
        sent
    }
}
