//! The durable state as rows, and back. A row is something that cannot be derived; indexes are built anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{BadRows, MachineId, MaintenanceId, Restoring, Row};

use super::details::DetailsTable;
use super::{ClusterState, ControlState};
use crate::command::{Details, Site};
use crate::record::Boot;
use crate::shared::{self, ClusterId};

/// One row of the state. Rows of a cluster follow the row that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after its content")]
pub enum StateRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, Details),
    Failed(MaintenanceId, MachineId, String),
    Booted(Boot),
    Cluster(ClusterId),
    Catalogue(shared::Row),
}

/// A state that is being built from rows.
#[derive(Debug, Default)]
pub struct RestoringState {
    shared: shared::Restoring,
    clusters: BTreeMap<ClusterId, Arc<ClusterState>>,
    /// The cluster whose rows come now.
    current: Option<RestoringCluster>,
    boot: Option<Boot>,
}

#[derive(Debug)]
struct RestoringCluster {
    id: ClusterId,
    rules: Restoring,
    site: Site,
    details: DetailsTable,
    failures: PagedMap<(MaintenanceId, MachineId), String>,
}

impl ControlState {
    /// The state as rows.
    pub fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let boot = self.boot.map(StateRow::Booted);
        let shared = Arc::unwrap_or_clone(self.shared).into_rows().map(StateRow::Catalogue);
        let clusters = self.clusters.into_iter().flat_map(|(id, cluster)| {
            std::iter::once(StateRow::Cluster(id)).chain(Arc::unwrap_or_clone(cluster).into_rows())
        });
        shared.chain(clusters).chain(boot)
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
        rules.chain([StateRow::Site(self.site)]).chain(details).chain(failures)
    }
}

impl RestoringState {
    /// Takes the next row.
    ///
    /// # Errors
    /// When it does not fit to those before it.
    pub fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Rules(row) => self.current()?.rules.add(row)?,
            StateRow::Site(site) => self.current()?.site = site,
            StateRow::Described(machine, details) => drop(self.current()?.details.insert(machine, details)),
            StateRow::Failed(work, machine, reason) => {
                self.current()?.failures.insert((work, machine), reason);
            }
            StateRow::Booted(boot) => self.boot = Some(boot),
            StateRow::Catalogue(row) => self.shared.add(row).map_err(bad_shared_rows)?,
            StateRow::Cluster(id) => {
                self.close_current()?;
                let (rules, site) = (Restoring::default(), Site::default());
                let (details, failures) = (DetailsTable::default(), PagedMap::default());
                self.current = Some(RestoringCluster { id, rules, site, details, failures });
            }
        }
        Ok(())
    }

    /// The state, once all rows are there.
    ///
    /// # Errors
    /// When some are missing.
    pub fn finish(mut self) -> Result<ControlState, BadRows> {
        self.close_current()?;
        let shared = self.shared.finish().map_err(bad_shared_rows)?;
        if !shared.clusters().map(|(id, _)| id).eq(self.clusters.keys().copied()) {
            return Err(BadRows("the clusters are not those of the catalogue"));
        }
        let (shared, addresses) = (Arc::new(shared), PagedMap::default());
        let mut state = ControlState { shared, clusters: self.clusters, boot: self.boot, addresses };
        state.index_addresses();
        Ok(state)
    }

    fn current(&mut self) -> Result<&mut RestoringCluster, BadRows> {
        self.current.as_mut().ok_or(BadRows("a row belongs to no cluster"))
    }

    fn close_current(&mut self) -> Result<(), BadRows> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let RestoringCluster { id, rules, site, details, failures } = current;
        let cluster = ClusterState { rules: rules.finish()?, site, details, failures };
        match self.clusters.insert(id, Arc::new(cluster)) {
            Some(_) => Err(BadRows("a cluster is there twice")),
            None => Ok(()),
        }
    }
}

fn bad_shared_rows(shared::BadRows(what): shared::BadRows) -> BadRows {
    BadRows(what)
}
