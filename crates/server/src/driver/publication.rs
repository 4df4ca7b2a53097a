//! Publication: documents, callers of the metadata endpoint, and snapshots follow what has become durable.

use forewarn_control::ClusterId;
use forewarn_control::Effect;
use forewarn_lifecycle::Action;

use super::Driver;
use super::batch::Batch;
use crate::publication::ClusterPublication;
use crate::snapshot::Snapshot;

impl Driver {
    /// Adds an effect to the batch. Effects on private runtime state take place at once.
    pub(super) fn prepare(&mut self, effect: Effect) {
        if let Effect::Jam(id, machine) = effect {
            self.runtime(id).jammed.insert(machine);
        } else {
            self.batch.add(effect);
        }
    }

    /// Publishes a batch that is durable. Returns the actions that are due.
    pub(super) fn publish_batch(&mut self, batch: &Batch) -> Vec<(ClusterId, Action)> {
        let (mut actions, mut unpublish) = (Vec::new(), Vec::new());
        for effect in &batch.effects {
            match effect {
                Effect::MachineChanged(id, machine) => self.publication(*id).list_with_document(*machine),
                Effect::MachineGone(id, machine) => self.publication(*id).remove(*machine),
                Effect::ClusterCreated(id) => self.publish_cluster(*id),
                Effect::ClusterChanged(id) => self.publication(*id).list_all(),
                Effect::WorkPlanned(work) => self.runtime(work.cluster).follow_work(effect),
                Effect::WorkFailed(id, _) => self.runtime(*id).follow_work(effect),
                Effect::WorkFinished(work) => self.runtime(work.cluster).follow_work(effect),
                Effect::Unpublish(id, tenant) => unpublish.push((*id, *tenant)),
                Effect::Perform(id, action) => actions.push((*id, *action)),
                Effect::Publish(..) | Effect::Announced(..) | Effect::Jam(..) | Effect::ClusterGone(_) => {}
            }
        }
        batch.publish.iter().for_each(|(id, tenant)| self.publication(*id).publish(*tenant));
        unpublish.into_iter().for_each(|(id, tenant)| self.runtime(id).published.withdraw(tenant));
        self.runtimes.retain(|id, _| self.state.cluster(*id).is_some());
        actions
    }

    /// Publishes everything: after a start, or after the journal was opened again.
    pub(super) fn publish_all(&mut self) {
        let former: Vec<_> = self.runtimes.keys().copied().collect();
        former.into_iter().for_each(|id| self.publication(id).withdraw_gone());
        self.runtimes.retain(|id, _| self.state.cluster(*id).is_some());
        let clusters: Vec<_> = self.state.clusters().map(|(id, _)| id).collect();
        clusters.into_iter().for_each(|id| self.publish_cluster(id));
        self.broadcasts.has_published(self.audit_end.number);
        self.publish_snapshot();
    }

    /// Publishes the state for readers.
    pub(super) fn publish_snapshot(&self) {
        let runtimes = self.runtimes.iter().map(|(id, runtime)| (*id, runtime.view())).collect();
        let (state, revision, identity) = (self.state.clone(), self.revision, self.identity);
        let clock_limit = self.clock_limit();
        let snapshot = Snapshot { state, runtimes, revision, identity, clock_limit };
        self.broadcasts.publish(snapshot);
    }

    /// Publishes every document of a cluster, and lists its machines.
    fn publish_cluster(&mut self, id: ClusterId) {
        self.runtime(id).revision += 1;
        let now = self.clock.now().steady;
        self.publication(id).publish_all(now);
    }

    /// The published part of a cluster, which follows its state.
    fn publication(&mut self, id: ClusterId) -> ClusterPublication<'_> {
        ClusterPublication {
            id,
            state: &self.state,
            identity: self.identity,
            audit_end: self.audit_end.number,
            directory: &self.directory,
            published: &mut self.runtimes.entry(id).or_default().published,
        }
    }
}
