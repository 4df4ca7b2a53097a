//! Machines of a test, and the variables by which programs know them.

use anyhow::{Context, Result};
use forewarn_control::find_machine;
use forewarn_lifecycle::MachineId;
use forewarn_server::{ControlHandle, State};
use forewarn_verdict::MachineName;

use super::programs::machine_variable;
use crate::machine_url::MachineUrl;

/// A machine that a program may be.
#[derive(Clone, Debug)]
pub(super) struct TestMachine {
    pub(super) name: MachineName,
    /// Base URL of the machine.
    pub(super) url: String,
}

/// The addresses of a test.
#[derive(Clone)]
pub(super) struct Machines {
    pub(super) control: ControlHandle,
    /// Base URL of the metadata endpoint.
    pub(super) metadata: String,
    /// URL of the operator API.
    pub(super) api: String,
}

/// Machines with an environment variable.
const VARIABLES_MAX: usize = 1_000;

impl Machines {
    /// The machines of the server, in the order in which they joined.
    pub(super) fn all(&self) -> Result<Vec<TestMachine>> {
        let all = |state: &State<'_>| {
            let machines = state.cluster.machines().take(VARIABLES_MAX);
            machines.filter_map(|(id, _)| self.machine_of(state, id)).collect()
        };
        Ok(self.control.look(all)?)
    }

    /// The machine that a user has named.
    pub(super) fn find(&self, name: &str) -> Result<TestMachine> {
        let found = self.control.look(|state| {
            let id = find_machine(state.cluster, name)?;
            Ok::<_, anyhow::Error>(self.machine_of(state, id))
        })?;
        found?.with_context(|| format!("no such machine: {name}"))
    }

    /// The machine with that name, or the first one.
    pub(super) fn default(&self, name: Option<&str>) -> Result<TestMachine> {
        match name {
            Some(name) => self.find(name).context("--vm"),
            None => self.all()?.into_iter().next().context("the fleet has no machine"),
        }
    }

    fn machine_of(&self, state: &State<'_>, id: MachineId) -> Option<TestMachine> {
        let cluster = state.cluster;
        let machine = cluster.machine(id)?;
        let tenant = cluster.tenant(machine.tenant)?.name.to_string();
        let name = machine.name.to_string();
        let is_unique = cluster.machines_named(&name).count() == 1;
        let path = if is_unique { name.clone() } else { format!("{tenant}/{name}") };
        let addresses = &state.durable.details_of(id).addresses;
        let MachineUrl { url, .. } = MachineUrl::at(&self.metadata, &path, addresses);
        Some(TestMachine { name: MachineName { tenant, name }, url })
    }

    /// The environment of every program.
    pub(super) fn environment(&self) -> Result<Vec<(String, String)>> {
        let mut environment = vec![("FOREWARN_API".to_owned(), self.api.clone())];
        environment.extend(self.all()?.into_iter().map(|one| (machine_variable(&one.name.name), one.url)));
        Ok(environment)
    }
}
