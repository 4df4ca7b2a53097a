//! The durable state as rows, and back. A row is something that cannot be derived; indexes are built anew.

use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{BadRows, MachineId, MaintenanceId, Restoring, Row};

use super::claims::Claims;
use super::details::DetailsTable;
use super::{ClusterState, ControlState};
use crate::command::{MachineDetails, Site};
use crate::receipts::{ReceiptRow, Receipts};
use crate::resources::{ResourceRow, Resources};
use crate::shared;
use crate::stream::ClusterId;

/// One row of the state. Rows of a cluster follow the row that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after its content")]
pub enum StateRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, MachineDetails),
    Failed(MaintenanceId, MachineId, String),
    Receipt(ReceiptRow),
    Resource(ResourceRow),
    Cluster(ClusterId),
    Shared(shared::Row),
}

/// A state that is being built from rows.
#[derive(Debug, Default)]
pub struct RestoringState {
    shared: shared::Restoring,
    clusters: PagedMap<ClusterId, Arc<ClusterState>>,
    /// The cluster whose rows come now.
    current: Option<RestoringCluster>,
}

#[derive(Debug, Default)]
struct RestoringCluster {
    id: ClusterId,
    rules: Restoring,
    site: Site,
    details: DetailsTable,
    failures: PagedMap<(MaintenanceId, MachineId), String>,
    receipts: Receipts,
    resources: Resources,
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
    /// Rows of the rules come first.
    fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let rules = self.rules.into_rows().map(StateRow::Rules);
        let details =
            self.details.into_rows().map(|(machine, details)| StateRow::Described(machine, details));
        let failures = self.failures.into_iter();
        let failures = failures.map(|((work, machine), reason)| StateRow::Failed(work, machine, reason));
        let receipts = self.receipts.into_rows().map(StateRow::Receipt);
        let resources = self.resources.into_rows().map(StateRow::Resource);
        let shell = details.chain(failures).chain(receipts).chain(resources);
        rules.chain([StateRow::Site(self.site)]).chain(shell)
    }
}

impl RestoringState {
    /// Takes the next row.
    ///
    /// # Errors
    /// Fails if it does not fit to those before it.
    pub fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Rules(row) => self.current()?.rules.add(row)?,
            StateRow::Site(site) => self.current()?.site = site,
            StateRow::Described(machine, details) => drop(self.current()?.details.insert(machine, details)),
            StateRow::Failed(work, machine, reason) => {
                self.current()?.failures.insert((work, machine), reason);
            }
            StateRow::Receipt(row) => self.current()?.receipts.restore(row)?,
            StateRow::Resource(row) => {
                let current = self.current()?;
                if row.cluster().is_some_and(|cluster| cluster != current.id) {
                    return Err(BadRows("a resource is in another cluster"));
                }
                current.resources.restore(row)?;
            }
            StateRow::Shared(row) => self.shared.add(row)?,
            StateRow::Cluster(id) => {
                self.close_current()?;
                self.current = Some(RestoringCluster { id, ..RestoringCluster::default() });
            }
        }
        Ok(())
    }

    /// The state, once all rows were taken.
    ///
    /// # Errors
    /// Fails if some are missing.
    pub fn finish(mut self) -> Result<ControlState, BadRows> {
        self.close_current()?;
        let shared = self.shared.finish()?;
        if !shared.clusters().map(|(id, _)| id).eq(self.clusters.keys().copied()) {
            return Err(BadRows("the clusters are not those of the shared state"));
        }
        let mut claims = Claims::default();
        self.clusters.iter().for_each(|(id, cluster)| claims.claim_all(*id, cluster));
        Ok(ControlState { shared: Arc::new(shared), clusters: self.clusters, claims })
    }

    fn current(&mut self) -> Result<&mut RestoringCluster, BadRows> {
        self.current.as_mut().ok_or(BadRows("a row belongs to no cluster"))
    }

    fn close_current(&mut self) -> Result<(), BadRows> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let RestoringCluster { id, rules, site, details, failures, receipts, resources } = current;
        let rules = rules.finish()?;
        let cluster = ClusterState { rules, site, details, failures, receipts, resources };
        match self.clusters.insert(id, Arc::new(cluster)) {
            Some(_) => Err(BadRows("a cluster is there twice")),
            None => Ok(()),
        }
    }
}
