//! Records, and what the shell knows besides the rules.

use forewarn_control::{Details, Home, Site};

use super::seal::{self, Place};
use super::{Malformed, stored_enum, stored_struct};
use forewarn_control::{Boot, Entry, Record, StateRow};

stored_struct! {
    Record { now, entry }
    Boot { id, offset_millis }
    Details { addresses, tags, home }
    Home { resource_group, location }
    Site { location, subscription, resource_group }
}

stored_enum!(Entry {
    0 => Change(cluster, change),
    1 => Clock,
    2 => Described { cluster, machine, details },
    3 => Site(cluster, site),
    4 => Booted(boot),
    5 => Catalogue(change),
    20 => Unread(announcements),
    30 => Failed { cluster, maintenance, machine, reason },
});

stored_enum!(StateRow {
    0 => Rules(row),
    1 => Site(site),
    2 => Described(machine, details),
    3 => Booted(boot),
    4 => Cluster(cluster),
    5 => Catalogue(row),
    30 => Failed(maintenance, machine, reason),
});

/// The bytes of the record of that number: a version, a checksum, and the content.
#[must_use]
pub fn record_to_stored(number: u64, record: &Record) -> Vec<u8> {
    seal::seal(Place::Record(number), record)
}

/// Reads the record of that number.
///
/// # Errors
/// When the bytes are not those of that record. Reading takes no more memory than the bytes could fill.
pub fn record_from_stored(number: u64, bytes: &[u8]) -> Result<Record, Malformed> {
    seal::open(Place::Record(number), bytes)
}

/// Reads content without version and checksum: for tests that look for bytes which cannot be read.
///
/// # Errors
/// When the bytes are not those of a record.
pub fn record_from_content(content: &[u8]) -> Result<Record, Malformed> {
    super::from_bytes(content)
}
