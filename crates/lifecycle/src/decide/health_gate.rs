//! Polls of machines that rollouts observe.

use forewarn_types::MachineId;

use super::draft::Draft;
use crate::change::Change;
use crate::refusal::Refusal;

impl Draft<'_> {
    /// Records a poll of a machine, if a rollout waits for one.
    pub(super) fn polled(&mut self, id: MachineId) -> Result<(), Refusal> {
        self.cluster.known_machine(id)?;
        if self.cluster.awaits_poll_of(id) {
            self.changes.push(Change::Polled(id));
        }
        Ok(())
    }
}
