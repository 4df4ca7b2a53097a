//! Reads: they use the snapshot of the last commits and the audit log, and never wait for a driver.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::decision::find_refused;
use forewarn_control::shared::SharedState;
use forewarn_control::{Chain, ControlError, Environment, NamedCommand, Permit, RefusedCommand};
use forewarn_metadata::{Caller, CallerId};
#[cfg(test)]
use forewarn_store::AuditLogReader;
use forewarn_store::{AuditBatch, AuditQuery, LoggedEntry, ReadError};
use tokio::sync::{broadcast, watch};

use super::ControlHandle;
use crate::snapshot::{Snapshot, State};

impl ControlHandle {
    /// The state that clusters share: names, tokens, webhooks, receipts, resources.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        self.parts.context.broadcasts.snapshot.load().state.shared_arc()
    }

    /// Checks that the token behind a permit is still valid, with the same role and scope.
    #[must_use]
    pub fn admits(&self, permit: &Permit) -> bool {
        let shared = self.shared();
        permit.stands(|number| shared.find_token(number), self.parts.context.clock.now().wall)
    }

    /// A handle to the cluster of that name.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn named(&self, cluster: &str) -> Result<Self, ControlError> {
        let found = self.shared().cluster_named(cluster).ok_or(ControlError::NoSuchCluster);
        found.map(|cluster| self.of(cluster))
    }

    /// Decides commands without carrying them out.
    ///
    /// # Errors
    /// Returns an error if one would be rejected.
    pub fn rehearse(&self, commands: &[NamedCommand]) -> Result<(), ControlError> {
        self.find_refused(commands).map_or(Ok(()), |refused| Err(refused.error))
    }

    /// Finds the first command that would be rejected.
    #[must_use]
    pub fn find_refused(&self, commands: &[NamedCommand]) -> Option<RefusedCommand> {
        let snapshot = self.snapshot();
        let state = snapshot.state.cluster_arc(self.cluster)?;
        let environment = Environment {
            now: self.parts.context.clock.now(),
            audit: Chain::default(),
            hypervisor: self.parts.context.hypervisor.kind(),
            revision: 0,
            jammed: &BTreeSet::new(),
        };
        find_refused(self.cluster, &state, &snapshot.state.shared_arc(), &environment, commands)
    }

    /// Entries that are added to the audit log from now on, of all clusters.
    #[must_use]
    pub fn entries(&self) -> broadcast::Receiver<LoggedEntry> {
        self.parts.context.broadcasts.audit_entries.subscribe()
    }

    /// Position of an audit entry such that the consequences of all entries up to it are published.
    #[must_use]
    pub(crate) fn published_position(&self) -> u64 {
        self.parts.context.broadcasts.published()
    }

    /// The last position of audit entries that were not broadcast, because another server of the realm had them first.
    pub(crate) fn skipped_position(&self) -> u64 {
        self.parts.context.broadcasts.skipped()
    }

    /// Reads the audit log, without the driver.
    ///
    /// # Errors
    /// Returns an error if it cannot be read now.
    pub async fn read_audit_log(&self, query: AuditQuery) -> Result<AuditBatch, ReadError> {
        self.parts.context.broadcasts.read_audit_log(query).await
    }

    /// A number that grows with every commit.
    #[must_use]
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.parts.context.broadcasts.commits.subscribe()
    }

    /// The state after the last commit.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.parts.context.broadcasts.snapshot.load_full()
    }

    /// The state after the last commit, for a short look: a guard is cheaper than a share of it.
    pub(crate) fn snapshot_guard(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.parts.context.broadcasts.snapshot.load()
    }

    /// The caller of the metadata endpoint that a machine is.
    pub(crate) fn caller(&self, id: CallerId) -> Option<Arc<Caller>> {
        let context = &self.parts.context;
        context.directory.caller(&context.broadcasts, id)
    }

    /// Reads the cluster as it was after the last commit. It does not wait for the driver.
    ///
    /// # Errors
    /// Returns an error if there is no such cluster.
    pub fn look<T>(&self, look: impl FnOnce(&State<'_>) -> T) -> Result<T, ControlError> {
        let snapshot = self.snapshot();
        let state = snapshot
            .cluster(self.cluster, self.parts.context.clock.now())
            .ok_or(ControlError::NoSuchCluster)?;
        Ok(look(&state))
    }

    /// Reads every cluster as it was after the last commit. It does not wait for a driver.
    pub(crate) fn look_at_clusters(&self, mut look: impl FnMut(&State<'_>)) {
        let (snapshot, now) = (self.snapshot(), self.parts.context.clock.now());
        let clusters = snapshot.state.clusters();
        clusters.filter_map(|(id, _)| snapshot.cluster(id, now)).for_each(|state| look(&state));
    }

    /// Makes every read of the audit log fail. Returns its reader.
    #[cfg(test)]
    pub(crate) fn close_audit_log(&self) -> Arc<AuditLogReader> {
        self.parts.context.broadcasts.reader.swap(Arc::new(AuditLogReader::closed()))
    }

    #[cfg(test)]
    pub(crate) fn open_audit_log(&self, reader: Arc<AuditLogReader>) {
        self.parts.context.broadcasts.reader.store(reader);
    }
}
