//! Records, and what the shell knows besides the rules.

use forewarn_control::{Details, Home, Site};

use super::seal::{self, Place};
use super::{Malformed, stored_enum, stored_struct};
use crate::record::{Boot, Entry, Record};
use crate::state::StateRow;

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

impl Record {
    /// The stored form of the record with that number: a version, a checksum, and its content.
    #[must_use]
    pub fn to_stored(&self, number: u64) -> Vec<u8> {
        seal::seal(Place::Record(number), self)
    }

    /// Reads the stored form of the record with that number.
    ///
    /// # Errors
    /// When the bytes are not that. Reading takes no more memory than they could fill, whatever they are.
    pub fn from_stored(number: u64, bytes: &[u8]) -> Result<Self, Malformed> {
        seal::open(Place::Record(number), bytes)
    }

    /// Reads content without version and checksum: for tests that look for bytes which cannot be read.
    ///
    /// # Errors
    /// When it is not the content of a record.
    pub fn from_content(content: &[u8]) -> Result<Self, Malformed> {
        super::from_bytes(content)
    }
}
