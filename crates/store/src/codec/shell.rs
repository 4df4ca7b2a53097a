//! Records, the details of machines, and rows of the state.

use forewarn_control::{
    ClusterEntry, Entry, HostReminders, MachineDetails, Record, ResourceGroupRef, Site, StateRow,
    StreamPosition,
};

use super::seal::{self, SealLocation};
use super::{Malformed, stored_enum, stored_struct};

stored_struct! {
    Record { now, entry }
    MachineDetails { addresses, tags, home }
    ResourceGroupRef { resource_group, location }
    HostReminders { count, last }
    StreamPosition { number, term, records }
    Site { location, subscription, resource_group }
}

stored_enum!(Entry { 0 => Shared(change), 1 => Cluster(cluster, change) });

stored_enum!(ClusterEntry {
    0 => Rules(change),
    1 => Described { machine, details },
    2 => Site(site),
    3 => Unread(announcements),
    4 => Failed { maintenance, target, reason },
    5 => ReceiptKept(receipt),
    6 => Resource(change),
    7 => Clock,
    8 => Booted(boot),
    9 => WebhookAdvanced { webhook, progress },
    10 => WebhookForgotten(webhook),
    11 => Closed { by, once },
    12 => Reminded { maintenance, host },
    13 => Positioned(position),
});

stored_enum!(StateRow {
    0 => Rules(row),
    1 => Site(site),
    2 => Described(machine, details),
    3 => Failed(maintenance, target, reason),
    4 => Cluster(cluster),
    5 => Shared(row),
    6 => Receipt(row),
    7 => Resource(row),
    8 => Booted(boot),
    9 => Webhook(webhook, progress),
    10 => Closed(by, once),
    11 => Reminded(maintenance, host, reminders),
    12 => Positioned(position),
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

#[cfg(test)]
mod tests {
    use forewarn_control::ClusterId;
    use forewarn_control::request::IdempotencyKey;
    use forewarn_control::resource_id::GroupId;
    use forewarn_control::shared::{Boot, Change, Claim, NewClaim, Progress, Row};
    use forewarn_lifecycle::Seed;

    use super::super::{from_bytes, to_bytes};
    use super::*;

    fn boot() -> Boot {
        Boot { id: [3; 16], offset_millis: -5 }
    }

    fn once() -> Option<IdempotencyKey> {
        Some(IdempotencyKey { key: "k".to_owned(), fingerprint: [7; 32] })
    }

    fn group() -> GroupId {
        GroupId { subscription: "s".to_owned(), name: "G".to_owned() }
    }

    /// promise: D1
    #[test]
    fn entries_of_a_cluster_are_read_as_they_were_written() {
        let (by, progress) = ("socket".to_owned(), Progress::from(9));
        for entry in [
            ClusterEntry::Clock,
            ClusterEntry::Booted(boot()),
            ClusterEntry::Positioned(StreamPosition { number: 7, term: 2, records: 9 }),
            ClusterEntry::WebhookAdvanced { webhook: 4, progress },
            ClusterEntry::WebhookForgotten(4),
            ClusterEntry::Closed { by: by.clone(), once: once() },
            ClusterEntry::Closed { by, once: None },
        ] {
            assert_eq!(from_bytes(&to_bytes(&entry)), Ok(entry));
        }
    }

    /// promise: D1
    #[test]
    fn rows_and_changes_of_claims_are_read_as_they_were_written() {
        let (cluster, location) = (ClusterId(3), "west".to_owned());
        let claim = Claim { cluster, group: group(), location: location.clone() };
        for row in [
            StateRow::Booted(boot()),
            StateRow::Positioned(StreamPosition { number: 7, term: 2, records: 9 }),
            StateRow::Shared(Row::Positioned(StreamPosition { number: 7, term: 2, records: 9 })),
            StateRow::Webhook(4, Progress::from(9)),
            StateRow::Closed("socket".to_owned(), once()),
            StateRow::Shared(Row::Secret(Seed([8; 16]))),
            StateRow::Shared(Row::Origin(cluster, Seed([8; 16]), Site::default())),
            StateRow::Shared(Row::Claim(claim)),
        ] {
            assert_eq!(from_bytes(&to_bytes(&row)), Ok(row));
        }
        let claims = vec![NewClaim { group: group(), location }];
        for change in [
            Change::ClaimsTaken { cluster, claims },
            Change::ClaimsReleased { cluster, groups: vec![group()] },
        ] {
            assert_eq!(from_bytes(&to_bytes(&change)), Ok(change));
        }
    }
}
