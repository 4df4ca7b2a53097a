//! The durable state as rows, and back. A row is something that cannot be derived; indexes are built anew.

use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{BadRows, HostId, MachineId, MaintenanceId, Restoring, Row, Target};

use super::cluster::ClosedBy;
use super::details::DetailsTable;
use super::member_index::MemberIndex;
use super::reminders::HostReminders;
use super::{ClusterState, ControlState};
use crate::command::{MachineDetails, Site};
use crate::receipts::{ReceiptRow, Receipts};
use crate::request::IdempotencyKey;
use crate::resources::{ResourceRow, Resources};
use crate::rows::check_new;
use crate::shared::{self, Boot, Progress, RestoredShared};
use crate::stream::{ClusterId, StreamPosition};

/// One row of the state. Rows of a cluster follow the row that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after its content")]
pub enum StateRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, MachineDetails),
    Failed(MaintenanceId, Target, String),
    Reminded(MaintenanceId, HostId, HostReminders),
    Receipt(ReceiptRow),
    Resource(ResourceRow),
    Cluster(ClusterId),
    Shared(shared::Row),
    /// The boot of the computer that the steady clock of a cluster belongs to.
    Booted(Boot),
    /// The place of the state of a cluster in the log of a realm.
    Positioned(StreamPosition),
    /// The progress of a webhook, by number.
    Webhook(u32, Progress),
    /// The caller that has closed a cluster, and the key of its request.
    Closed(String, Option<IdempotencyKey>),
}

/// A state that is being built from rows of all streams, perhaps of an older version: claims, the secret of the shared
/// state and the progress of webhooks in clusters are derived if it had none.
#[derive(Debug, Default)]
pub struct RestoringState {
    shared: shared::Restoring,
    clusters: PagedMap<ClusterId, Arc<ClusterState>>,
    /// The cluster whose rows come now.
    current: Option<RestoringCluster>,
}

/// A state of a cluster that is being built from its rows.
#[derive(Debug, Default)]
pub struct RestoringCluster {
    id: ClusterId,
    rules: Restoring,
    site: Site,
    details: Vec<(MachineId, Arc<MachineDetails>)>,
    failures: PagedMap<(MaintenanceId, Target), String>,
    reminders: PagedMap<(MaintenanceId, HostId), HostReminders>,
    receipts: Receipts,
    resources: Resources,
    webhooks: PagedMap<u32, Progress>,
    boot: Option<Boot>,
    position: Option<StreamPosition>,
    closed: Option<ClosedBy>,
}

impl ControlState {
    /// The state as rows.
    pub fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let shared = Arc::unwrap_or_clone(self.shared).into_rows().map(StateRow::Shared);
        let clusters = self.clusters.into_iter().flat_map(|(id, cluster)| {
            std::iter::once(StateRow::Cluster(id)).chain(Arc::unwrap_or_clone(cluster).into_rows())
        });
        shared.chain(clusters)
    }
}

impl ClusterState {
    /// The state of a cluster as rows. Rows of the rules come first.
    pub fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let rules = self.rules.into_rows().map(StateRow::Rules);
        let details =
            self.details.into_rows().map(|(machine, details)| StateRow::Described(machine, details));
        let failures = self.failures.into_iter();
        let failures = failures.map(|((work, target), reason)| StateRow::Failed(work, target, reason));
        let reminders = self.reminders.into_iter();
        let reminders = reminders.map(|((work, host), known)| StateRow::Reminded(work, host, known));
        let receipts = self.receipts.into_rows().map(StateRow::Receipt);
        let resources = self.resources.into_rows().map(StateRow::Resource);
        let webhooks = self.webhooks.into_iter();
        let webhooks = webhooks.map(|(webhook, progress)| StateRow::Webhook(webhook, progress));
        let boot = self.boot.map(StateRow::Booted);
        let position = self.position.map(StateRow::Positioned);
        let closed = self.closed.map(|ClosedBy { by, once }| StateRow::Closed(by, once));
        let shell = details.chain(failures).chain(reminders).chain(receipts).chain(resources).chain(webhooks);
        rules.chain([StateRow::Site(self.site)]).chain(shell).chain(boot).chain(position).chain(closed)
    }
}

impl RestoringCluster {
    /// A cluster whose rows come next.
    #[must_use]
    pub fn new(id: ClusterId) -> Self {
        Self { id, ..Self::default() }
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// Fails if it does not fit to those before it, or is not a row of a cluster.
    pub fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Rules(row) => self.rules.add(row)?,
            StateRow::Site(site) => self.site = site,
            StateRow::Described(machine, details) => self.details.push((machine, Arc::new(details))),
            StateRow::Failed(work, target, reason) => drop(self.failures.insert((work, target), reason)),
            StateRow::Reminded(work, host, known) => {
                check_new(self.reminders.insert((work, host), known).as_ref())?;
            }
            StateRow::Receipt(row) => self.receipts.restore(row)?,
            StateRow::Resource(row) => {
                if row.cluster().is_some_and(|cluster| cluster != self.id) {
                    return Err(BadRows("a resource is in another cluster"));
                }
                self.resources.restore(row)?;
            }
            StateRow::Booted(boot) => self.boot = Some(boot),
            StateRow::Positioned(position) => self.position = Some(position),
            StateRow::Webhook(webhook, progress) => {
                check_new(self.webhooks.insert(webhook, progress).as_ref())?;
            }
            StateRow::Closed(by, once) => self.closed = Some(ClosedBy { by, once }),
            StateRow::Shared(_) | StateRow::Cluster(_) => return Err(BadRows("a row is not of a cluster")),
        }
        Ok(())
    }

    /// The state, once all rows were taken.
    ///
    /// # Errors
    /// Fails if some are missing.
    pub fn finish(self) -> Result<ClusterState, BadRows> {
        let Self {
            id: _,
            rules,
            site,
            details,
            failures,
            reminders,
            receipts,
            resources,
            webhooks,
            boot,
            position,
            closed,
        } = self;
        let (rules, details) = (rules.finish()?, details.into_iter().collect::<DetailsTable>());
        let addresses = details.addresses().collect();
        let mut state = ClusterState {
            rules,
            site,
            details,
            failures,
            reminders,
            receipts,
            resources,
            webhooks,
            boot,
            position,
            closed,
            addresses,
            members: MemberIndex::default(),
        };
        state.list_members();
        Ok(state)
    }
}

impl RestoringState {
    /// Takes the next row.
    ///
    /// # Errors
    /// Fails if it does not fit to those before it.
    pub fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Shared(row) => self.shared.add(row),
            StateRow::Cluster(id) => {
                self.close_current()?;
                self.current = Some(RestoringCluster::new(id));
                Ok(())
            }
            row @ (StateRow::Rules(_)
            | StateRow::Site(_)
            | StateRow::Described(..)
            | StateRow::Failed(..)
            | StateRow::Reminded(..)
            | StateRow::Receipt(_)
            | StateRow::Resource(_)
            | StateRow::Booted(_)
            | StateRow::Positioned(_)
            | StateRow::Webhook(..)
            | StateRow::Closed(..)) => {
                self.current.as_mut().ok_or(BadRows("a row belongs to no cluster"))?.add(row)
            }
        }
    }

    /// The state, once all rows were taken.
    ///
    /// # Errors
    /// Fails if some are missing.
    pub fn finish(mut self) -> Result<ControlState, BadRows> {
        self.close_current()?;
        let RestoredShared { shared, is_complete, progress } = self.shared.finish_any()?;
        if !shared.clusters().map(|(id, _)| id).eq(self.clusters.keys().copied()) {
            return Err(BadRows("the clusters are not those of the shared state"));
        }
        let mut state = ControlState::from_parts(Arc::new(shared), self.clusters);
        progress.into_iter().for_each(|(webhook, progress)| state.set_progress(webhook, progress));
        Ok(if is_complete { state } else { state.with_derived_secret().with_derived_claims() })
    }

    fn close_current(&mut self) -> Result<(), BadRows> {
        let Some(current) = self.current.take() else { return Ok(()) };
        match self.clusters.insert(current.id, Arc::new(current.finish()?)) {
            Some(_) => Err(BadRows("a cluster is there twice")),
            None => Ok(()),
        }
    }
}
