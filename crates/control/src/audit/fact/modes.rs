//! Facts about the maintenance mode of hosts.

use forewarn_lifecycle::{HostId, HostTask, HostWork, MachineId};

use super::{AuditFact, FactWriter};
use crate::command::host_mode::LeavingWord;
use crate::command::lookup::full_name;
use crate::view::describe::join_first;
use crate::view::host_mode::task_text;

impl FactWriter<'_> {
    pub(super) fn mode_entered(&self, host: HostId, work: &HostTask) -> AuditFact {
        let leaving = match work.kind {
            HostWork::Maintenance { leaving, .. } => leaving.into(),
            HostWork::Update | HostWork::NetworkUpdate | HostWork::Migration | HostWork::Restart => {
                LeavingWord::Live
            }
        };
        let text = format!("enters maintenance mode: {}", task_text(work, leaving));
        self.of_host("maintenance", self.host(host), &text)
    }

    /// The machines that stay away are part of the fact.
    pub(super) fn mode_exited(&self, host: HostId, staying: &[MachineId]) -> AuditFact {
        let names: Vec<_> = staying.iter().map(|machine| full_name(self.cluster, *machine)).collect();
        let stay = match names.len() {
            0 => String::new(),
            1 => format!("; {} stays as it is", names[0]),
            count => format!("; {} stay as they are", join_first(names.iter().cloned(), count)),
        };
        let text = format!("is no longer in maintenance mode{stay}");
        AuditFact { machines: names, ..self.of_host("maintenance", self.host(host), &text) }
    }
}
