//! Records, the details of machines, and rows of the state.

use forewarn_control::{ClusterEntry, Entry, MachineDetails, Record, ResourceGroupRef, Site, StateRow};

use super::seal::{self, SealLocation};
use super::{Malformed, stored_enum, stored_struct};

stored_struct! {
    Record { now, entry }
    MachineDetails { addresses, tags, home }
    ResourceGroupRef { resource_group, location }
    Site { location, subscription, resource_group }
}

stored_enum!(Entry { 0 => Shared(change), 1 => Cluster(cluster, change) });

stored_enum!(ClusterEntry {
    0 => Rules(change),
    1 => Described { machine, details },
    2 => Site(site),
    3 => Unread(announcements),
    4 => Failed { maintenance, machine, reason },
    5 => ReceiptKept(receipt),
    6 => Resource(change),
});

stored_enum!(StateRow {
    0 => Rules(row),
    1 => Site(site),
    2 => Described(machine, details),
    3 => Failed(maintenance, machine, reason),
    4 => Cluster(cluster),
    5 => Shared(row),
    6 => Receipt(row),
    7 => Resource(row),
});

/// Encodes the record of that number: version, checksum and content.
#[must_use]
pub fn record_to_stored(number: u64, record: &Record) -> Vec<u8> {
    seal::seal(SealLocation::Record(number), record)
}

/// PendingReads the record of that number.
///
/// # Errors
/// Fails if the bytes are not those of that record. Decoding takes no more memory than their length allows.
pub fn record_from_stored(number: u64, bytes: &[u8]) -> Result<Record, Malformed> {
    seal::open(SealLocation::Record(number), bytes)
}

/// Decodes content without version and checksum: for tests that look for bytes that cannot be decoded.
///
/// # Errors
/// Fails if the bytes are not those of a record.
pub fn record_from_content(content: &[u8]) -> Result<Record, Malformed> {
    super::from_bytes(content)
}
