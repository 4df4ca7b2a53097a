//! What replaying gives: the states of the rules, and what the shell knows besides.

use std::collections::BTreeMap;

use forewarn_control::shared::{Catalogue, ClusterId};
use forewarn_control::{Details, Site};
use forewarn_lifecycle::{BadRows, Change, Cluster, MachineId, MaintenanceId, Now, Restoring, Row, Seed};

use crate::record::{Boot, Entry, Record};

/// All that has to survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What the clusters are called, and who may do what.
    pub catalogue: Catalogue,
    /// Every cluster.
    pub clusters: BTreeMap<ClusterId, Estate>,
    /// How the steady clock last went with a boot of the computer.
    pub boot: Option<Boot>,
}

/// A cluster, and what is known besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estate {
    /// The state of the rules.
    pub cluster: Cluster,
    /// What all machines are told of where they are.
    pub site: Site,
    /// What is known of machines besides; of some, nothing is.
    pub details: BTreeMap<MachineId, Details>,
    /// The reasons of failures of work that is not over.
    pub failures: BTreeMap<(MaintenanceId, MachineId), String>,
}

/// One row of it. Those of a cluster follow the row that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, Details),
    Failed(MaintenanceId, MachineId, String),
    Booted(Boot),
    Cluster(ClusterId),
    Catalogue(forewarn_control::shared::Row),
}

/// A state that is being made from its rows.
#[derive(Debug, Default)]
pub(crate) struct RestoringState {
    catalogue: forewarn_control::shared::Restoring,
    clusters: BTreeMap<ClusterId, Estate>,
    /// The cluster whose rows come now.
    current: Option<RestoringEstate>,
    boot: Option<Boot>,
}

#[derive(Debug)]
struct RestoringEstate {
    id: ClusterId,
    rules: Restoring,
    site: Site,
    details: BTreeMap<MachineId, Details>,
    failures: BTreeMap<(MaintenanceId, MachineId), String>,
}

impl State {
    /// Nothing has happened: one cluster, with nothing in it.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let clusters = BTreeMap::from([(ClusterId::DEFAULT, Estate::new(seed))]);
        Self { catalogue: Catalogue::new(), clusters, boot: None }
    }

    /// Lets happen what has happened. What was owed then, is owed no more: [`Cluster::unfinished`] says what still is.
    pub fn apply(&mut self, record: &Record) {
        match &record.entry {
            Entry::Change(cluster, change) => {
                let Some(estate) = self.clusters.get_mut(cluster) else { return };
                estate.cluster.evolve(record.now, change);
                estate.forget_failures(change);
                // A machine goes with the last thing that is done to it, or when it is forgotten; its details go too.
                if let Change::Completed { machine, .. } | Change::MachineForgotten(machine) = change
                    && estate.cluster.machine(*machine).is_none()
                {
                    estate.details.remove(machine);
                }
            }
            Entry::Clock | Entry::Unread(_) => {}
            Entry::Described { cluster, machine, details } => {
                if let Some(estate) = self.clusters.get_mut(cluster) {
                    estate.details.insert(*machine, details.clone());
                }
            }
            Entry::Site(cluster, site) => {
                if let Some(estate) = self.clusters.get_mut(cluster) {
                    estate.site = site.clone();
                }
            }
            Entry::Booted(boot) => self.boot = Some(*boot),
            Entry::Failed { cluster, maintenance, machine, reason } => {
                if let Some(estate) = self.clusters.get_mut(cluster) {
                    estate.failures.insert((*maintenance, *machine), reason.clone());
                }
            }
            Entry::Catalogue(change) => self.apply_to_catalogue(record.now, change),
        }
    }

    /// Lets the catalogue change. Clusters come and go with their names.
    pub fn apply_to_catalogue(&mut self, now: Now, change: &forewarn_control::shared::Change) {
        use forewarn_control::shared::Change as Step;
        self.catalogue.evolve(now, change);
        match change {
            Step::ClusterCreated { cluster, seed, .. } => {
                self.clusters.insert(*cluster, Estate::new(*seed));
            }
            Step::ClusterRemoved(cluster) => drop(self.clusters.remove(cluster)),
            Step::ClusterRenamed { .. }
            | Step::TokenIssued(_)
            | Step::TokenRevoked(_)
            | Step::ReceiptKept { .. }
            | Step::Filed(_)
            | Step::Webhook(_) => {}
        }
    }

    /// The same as rows.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let boot = self.boot.map(StateRow::Booted);
        let catalogue = self.catalogue.into_rows().map(StateRow::Catalogue);
        let clusters = self.clusters.into_iter();
        let clusters = clusters
            .flat_map(|(id, estate)| std::iter::once(StateRow::Cluster(id)).chain(estate.into_rows()));
        catalogue.chain(clusters).chain(boot)
    }
}

impl Estate {
    /// A cluster in which nothing has happened.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let (details, failures) = (BTreeMap::new(), BTreeMap::new());
        Self { cluster: Cluster::new(seed), site: Site::default(), details, failures }
    }

    /// The failures of some work: which machines, and why.
    pub fn failures_of(&self, work: MaintenanceId) -> impl Iterator<Item = (MachineId, &str)> {
        let all = self.failures.range((work, MachineId(0))..=(work, MachineId(u32::MAX)));
        all.map(|((_, machine), reason)| (*machine, reason.as_str()))
    }

    /// Forgets the failures of work that is over with a change that has been applied.
    pub fn forget_failures(&mut self, change: &Change) {
        let Change::Completed { maintenance, .. } = change else { return };
        if self.cluster.maintenance(*maintenance).is_none() {
            let all: Vec<_> = self.failures_of(*maintenance).map(|(machine, _)| machine).collect();
            all.into_iter().for_each(|machine| drop(self.failures.remove(&(*maintenance, machine))));
        }
    }

    /// Those of the rules come first.
    fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let rules = self.cluster.into_rows().map(StateRow::Rules);
        let details =
            self.details.into_iter().map(|(machine, details)| StateRow::Described(machine, details));
        let failures = self.failures.into_iter();
        let failures = failures.map(|((work, machine), reason)| StateRow::Failed(work, machine, reason));
        rules.chain([StateRow::Site(self.site)]).chain(details).chain(failures)
    }
}

impl RestoringState {
    pub(crate) fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Rules(row) => self.current()?.rules.add(row)?,
            StateRow::Site(site) => self.current()?.site = site,
            StateRow::Described(machine, details) => drop(self.current()?.details.insert(machine, details)),
            StateRow::Failed(work, machine, reason) => {
                self.current()?.failures.insert((work, machine), reason);
            }
            StateRow::Booted(boot) => self.boot = Some(boot),
            StateRow::Catalogue(row) => self.catalogue.add(row).map_err(of_catalogue)?,
            StateRow::Cluster(id) => {
                self.close_current()?;
                let (rules, site) = (Restoring::default(), Site::default());
                let (details, failures) = (BTreeMap::new(), BTreeMap::new());
                self.current = Some(RestoringEstate { id, rules, site, details, failures });
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<State, BadRows> {
        self.close_current()?;
        let catalogue = self.catalogue.finish().map_err(of_catalogue)?;
        if !catalogue.clusters().map(|(id, _)| id).eq(self.clusters.keys().copied()) {
            return Err(BadRows("the clusters are not those of the catalogue"));
        }
        Ok(State { catalogue, clusters: self.clusters, boot: self.boot })
    }

    fn current(&mut self) -> Result<&mut RestoringEstate, BadRows> {
        self.current.as_mut().ok_or(BadRows("a row belongs to no cluster"))
    }

    fn close_current(&mut self) -> Result<(), BadRows> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let RestoringEstate { id, rules, site, details, failures } = current;
        let estate = Estate { cluster: rules.finish()?, site, details, failures };
        match self.clusters.insert(id, estate) {
            Some(_) => Err(BadRows("a cluster is there twice")),
            None => Ok(()),
        }
    }
}

/// Rows of the catalogue that do not fit together.
fn of_catalogue(forewarn_control::shared::BadRows(what): forewarn_control::shared::BadRows) -> BadRows {
    BadRows(what)
}
