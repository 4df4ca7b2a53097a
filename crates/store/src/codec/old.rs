//! The stored form of format 0, which is only read: records and rows of the state.
//!
//! In format 0, receipts, resources and operations of all clusters were in the shared state, and one record could name
//! announcements of several clusters. Each becomes a record or a row of its cluster here. Receipts do not name a
//! cluster: they stay in the shared state.

use std::collections::BTreeMap;

use forewarn_control::resources::{
    Leaving, Operation, OperationResult, Resource, ResourceChange, ResourceRow,
};
use forewarn_control::shared::{Boot, Change as SharedChange, Counters, Row as SharedRow};
use forewarn_control::shared::{Progress, Token, Webhook, WebhookChange};
use forewarn_control::{ClusterEntry, ControlState, Entry, MachineDetails, Record, Site, StateRow};
use forewarn_control::{ClusterId, NewReceipt, Receipt, ReceiptRow, StoredResponse};
use forewarn_lifecycle::{Change, MachineId, MaintenanceId, Name, Now, Row, Seed, Target};

use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

/// A record of format 0.
pub(crate) struct OldRecord {
    now: Now,
    entry: OldEntry,
}

enum OldEntry {
    Change(ClusterId, Change),
    Clock,
    Described { cluster: ClusterId, machine: MachineId, details: MachineDetails },
    Site(ClusterId, Site),
    Booted(Boot),
    Shared(OldShared),
    Unread(Vec<(ClusterId, MaintenanceId)>),
    Failed { cluster: ClusterId, maintenance: MaintenanceId, target: Target, reason: String },
}

enum OldShared {
    ClusterCreated { cluster: ClusterId, name: Name, seed: Seed },
    ClusterRenamed { cluster: ClusterId, name: Name },
    ClusterRemoved(ClusterId),
    TokenIssued(Token),
    TokenRevoked(u32),
    ReceiptKept { by: String, key: String, fingerprint: [u8; 32], answer: StoredResponse },
    Resource(OldResourceChange),
    Webhook(WebhookChange),
}

enum OldResourceChange {
    Put(Resource),
    Removed(String),
    Marked { key: String, leaving: Leaving },
    Opened(OldOperation),
    WorkEnded { cluster: ClusterId, maintenance: MaintenanceId, result: OperationResult },
    OpenedWith { operation: OldOperation, token: u32 },
}

/// An operation without its token, which is stored beside it.
pub(crate) struct OldOperation(Operation);

/// A row of the state of format 0.
pub(crate) enum OldRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, MachineDetails),
    Booted(Boot),
    Cluster(ClusterId),
    Shared(OldSharedRow),
    Failed(MaintenanceId, Target, String),
}

pub(crate) enum OldSharedRow {
    Head(OldCounters),
    Cluster(ClusterId, Name),
    Token(Token),
    Receipt(u64, Receipt),
    Resource(Resource),
    Operation(OldOperation),
    NextOperation(u64),
    Webhook(Webhook, Progress),
    OperationWith(OldOperation, u32),
}

pub(crate) struct OldCounters {
    cluster: u32,
    token: u32,
    webhook: u32,
    receipt: u64,
}

stored_struct! {
    OldRecord { now, entry }
    OldCounters { cluster, token, webhook, receipt }
}

stored_enum!(OldEntry {
    0 => Change(cluster, change),
    1 => Clock,
    2 => Described { cluster, machine, details },
    3 => Site(cluster, site),
    4 => Booted(boot),
    5 => Shared(change),
    20 => Unread(announcements),
    30 => Failed { cluster, maintenance, target, reason },
});

stored_enum!(OldShared {
    0 => ClusterCreated { cluster, name, seed },
    1 => ClusterRenamed { cluster, name },
    2 => ClusterRemoved(cluster),
    3 => TokenIssued(token),
    4 => TokenRevoked(number),
    5 => ReceiptKept { by, key, fingerprint, answer },
    6 => Resource(change),
    7 => Webhook(change),
});

stored_enum!(OldResourceChange {
    0 => Put(resource),
    1 => Removed(key),
    2 => Marked { key, leaving },
    3 => Opened(operation),
    4 => WorkEnded { cluster, maintenance, result },
    40 => OpenedWith { operation, token },
});

stored_enum!(OldRow {
    0 => Rules(row),
    1 => Site(site),
    2 => Described(machine, details),
    3 => Booted(boot),
    4 => Cluster(cluster),
    5 => Shared(row),
    30 => Failed(maintenance, target, reason),
});

stored_enum!(OldSharedRow {
    0 => Head(next),
    1 => Cluster(id, name),
    2 => Token(token),
    3 => Receipt(number, receipt),
    4 => Resource(resource),
    5 => Operation(operation),
    6 => NextOperation(number),
    7 => Webhook(webhook, progress),
    40 => OperationWith(operation, token),
});

impl Stored for OldOperation {
    fn write(&self, out: &mut Writer) {
        let Operation { number, name, about, cluster, token: _, waits, began, ended, result } = &self.0;
        number.write(out);
        name.write(out);
        about.write(out);
        cluster.write(out);
        waits.write(out);
        began.write(out);
        ended.write(out);
        result.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(Operation {
            number: Stored::read(input)?,
            name: Stored::read(input)?,
            about: Stored::read(input)?,
            cluster: Stored::read(input)?,
            token: None,
            waits: Stored::read(input)?,
            began: Stored::read(input)?,
            ended: Stored::read(input)?,
            result: Stored::read(input)?,
        }))
    }
}

impl OldOperation {
    fn with_token(self, token: u32) -> Operation {
        Operation { token: Some(token), ..self.0 }
    }
}

impl OldRecord {
    /// The records that it becomes. `state` is the state before it.
    pub(crate) fn upgraded(self, state: &ControlState) -> Vec<Record> {
        let Self { now, entry } = self;
        if let OldEntry::Unread(announcements) = entry {
            return unread(now, &announcements);
        }
        entry.upgraded(state).map(|entry| Record { now, entry }).into_iter().collect()
    }
}

/// The announcements of each cluster, which follow each other.
fn unread(now: Now, announcements: &[(ClusterId, MaintenanceId)]) -> Vec<Record> {
    let mut records = Vec::new();
    for cluster in announcements.chunk_by(|(one, _), (other, _)| one == other) {
        let (id, maintenances) = (cluster[0].0, cluster.iter().map(|(_, maintenance)| *maintenance));
        records.extend(Record::unread(now, id, &maintenances.collect::<Vec<_>>()));
    }
    records
}

impl OldEntry {
    fn upgraded(self, state: &ControlState) -> Option<Entry> {
        Some(match self {
            Self::Change(cluster, change) => Entry::Cluster(cluster, ClusterEntry::Rules(change)),
            Self::Clock => Entry::Shared(SharedChange::Clock),
            Self::Described { cluster, machine, details } => {
                Entry::Cluster(cluster, ClusterEntry::Described { machine, details })
            }
            Self::Site(cluster, site) => Entry::Cluster(cluster, ClusterEntry::Site(site)),
            Self::Booted(boot) => Entry::Shared(SharedChange::Booted(boot)),
            Self::Shared(OldShared::Resource(change)) => return change.upgraded(state),
            Self::Shared(change) => Entry::Shared(change.upgraded()?),
            Self::Failed { cluster, maintenance, target, reason } => {
                Entry::Cluster(cluster, ClusterEntry::Failed { maintenance, target, reason })
            }
            Self::Unread(_) => return None,
        })
    }
}

impl OldShared {
    fn upgraded(self) -> Option<SharedChange> {
        Some(match self {
            Self::ClusterCreated { cluster, name, seed } => {
                // The record of its site follows.
                SharedChange::ClusterCreated { cluster, name, seed, site: Site::default() }
            }
            Self::ClusterRenamed { cluster, name } => SharedChange::ClusterRenamed { cluster, name },
            Self::ClusterRemoved(cluster) => SharedChange::ClusterRemoved(cluster),
            Self::TokenIssued(token) => SharedChange::TokenIssued(token),
            Self::TokenRevoked(number) => SharedChange::TokenRevoked(number),
            Self::ReceiptKept { by, key, fingerprint, answer } => {
                SharedChange::ReceiptKept(NewReceipt { by, key, fingerprint, answer })
            }
            Self::Webhook(change) => SharedChange::Webhook(change),
            Self::Resource(_) => return None,
        })
    }
}

impl OldResourceChange {
    fn upgraded(self, state: &ControlState) -> Option<Entry> {
        let cluster_of = |key: &str| state.resource(key).map(|resource| resource.cluster);
        let (cluster, change) = match self {
            Self::Put(resource) => (resource.cluster, ResourceChange::Put(resource)),
            Self::Removed(key) => (cluster_of(&key)?, ResourceChange::Removed(key)),
            Self::Marked { key, leaving } => (cluster_of(&key)?, ResourceChange::Marked { key, leaving }),
            Self::Opened(OldOperation(operation)) => (operation.cluster, ResourceChange::Opened(operation)),
            Self::OpenedWith { operation, token } => {
                (operation.0.cluster, ResourceChange::Opened(operation.with_token(token)))
            }
            Self::WorkEnded { cluster, maintenance, result } => {
                (cluster, ResourceChange::WorkEnded { maintenance, result })
            }
        };
        Some(Entry::Cluster(cluster, ClusterEntry::Resource(change)))
    }
}

/// Converts rows of format 0 to the present format. Resources precede their clusters, and wait for them here.
#[derive(Debug, Default)]
pub(crate) struct RowUpgrade {
    next_receipt: u64,
    next_operation: u64,
    resources: BTreeMap<ClusterId, Vec<ResourceRow>>,
}

impl RowUpgrade {
    /// The rows that a row becomes.
    pub(crate) fn upgrade(&mut self, row: OldRow) -> Vec<StateRow> {
        match row {
            OldRow::Rules(row) => vec![StateRow::Rules(row)],
            OldRow::Site(site) => vec![StateRow::Site(site)],
            OldRow::Described(machine, details) => vec![StateRow::Described(machine, details)],
            OldRow::Booted(boot) => vec![StateRow::Shared(SharedRow::Booted(boot))],
            OldRow::Failed(maintenance, target, reason) => {
                vec![StateRow::Failed(maintenance, target, reason)]
            }
            OldRow::Cluster(id) => {
                let resources = self.resources.remove(&id).unwrap_or_default();
                let next = ResourceRow::NextOperation(self.next_operation);
                let resources = resources.into_iter().chain([next]).map(StateRow::Resource);
                std::iter::once(StateRow::Cluster(id)).chain(resources).collect()
            }
            OldRow::Shared(row) => self.upgrade_shared(row).map(StateRow::Shared).into_iter().collect(),
        }
    }

    fn upgrade_shared(&mut self, row: OldSharedRow) -> Option<SharedRow> {
        Some(match row {
            OldSharedRow::Head(OldCounters { cluster, token, webhook, receipt }) => {
                self.next_receipt = receipt;
                SharedRow::Head(Counters { cluster, token, webhook })
            }
            OldSharedRow::Cluster(id, name) => SharedRow::Cluster(id, name),
            OldSharedRow::Token(token) => SharedRow::Token(token),
            OldSharedRow::Receipt(number, receipt) => {
                SharedRow::Receipt(ReceiptRow::Receipt(number, receipt))
            }
            OldSharedRow::Resource(resource) => {
                return self.keep(resource.cluster, ResourceRow::Resource(resource));
            }
            OldSharedRow::Operation(OldOperation(operation)) => {
                return self.keep(operation.cluster, ResourceRow::Operation(operation));
            }
            OldSharedRow::OperationWith(operation, token) => {
                return self.keep(operation.0.cluster, ResourceRow::Operation(operation.with_token(token)));
            }
            OldSharedRow::NextOperation(next) => {
                // It follows all receipts.
                self.next_operation = next;
                SharedRow::Receipt(ReceiptRow::Next(self.next_receipt))
            }
            OldSharedRow::Webhook(webhook, progress) => SharedRow::WebhookWithProgress(webhook, progress),
        })
    }

    fn keep(&mut self, cluster: ClusterId, row: ResourceRow) -> Option<SharedRow> {
        self.resources.entry(cluster).or_default().push(row);
        None
    }
}
