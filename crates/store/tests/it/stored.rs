//! The stored form, over random histories: it is read as it was written, and nothing else is taken for it.

#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test world may be blunt"
)]

use std::collections::BTreeSet;
use std::net::IpAddr;

use forewarn_control::ClusterId;
use forewarn_control::resources::{
    Body, Leaving, Link, Operation, OperationResult, Resource, ResourceChange,
};
use forewarn_control::shared::{Boot, Change};
use forewarn_control::{ClusterEntry, Entry, NewReceipt, Record, StoredResponse};
use forewarn_control::{MachineDetails, ResourceGroupRef, Site, StreamPosition};
use forewarn_lifecycle::{HostId, MachineId, MaintenanceId, Now, ScaleSetId, Steady, TenantId, Timestamp};
use forewarn_observer::random::{Layout, RandomOperation, build, layouts, random_operations};
use forewarn_store::{Malformed, record_from_content, record_from_stored, record_to_stored};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// What stands in front of content: a version and a checksum.
const SEAL_BYTES: usize = 9;

fn records(layout: &Layout, history: &[RandomOperation]) -> Vec<Record> {
    let mut world = build(layout);
    history.iter().for_each(|happening| world.happen(happening));
    let journal = world.journal.into_iter();
    journal.map(|(now, change)| Record::rules(now, ClusterId(0), change)).collect()
}

fn histories() -> impl Strategy<Value = Vec<Record>> {
    (layouts(), random_operations()).prop_map(|(layout, history)| records(&layout, &history))
}

/// One record of a random history.
fn changes() -> impl Strategy<Value = Record> {
    (histories(), any::<prop::sample::Index>()).prop_map(|(records, which)| which.get(&records).clone())
}

fn receipts() -> impl Strategy<Value = ClusterEntry> {
    let parts = ("[a-z ]{1,20}", "[!-~]{1,20}", any::<[u8; 32]>(), prop::collection::vec(any::<u8>(), 0..50));
    parts.prop_map(|(by, key, fingerprint, answer)| {
        ClusterEntry::ReceiptKept(NewReceipt { by, key, fingerprint, answer: StoredResponse(answer.into()) })
    })
}

fn resources() -> impl Strategy<Value = ClusterEntry> {
    let links = prop_oneof![
        any::<u32>().prop_map(|id| Link::Machine(MachineId(id))),
        any::<u32>().prop_map(|id| Link::Tenant(TenantId(id))),
        any::<u32>().prop_map(|id| Link::ScaleSet(ScaleSetId(id))),
    ];
    let leaving = prop_oneof![Just(Leaving::Stays), Just(Leaving::Leaves)];
    let failed = OperationResult::Failed { code: "Failed".to_owned(), message: "it failed".to_owned() };
    let results = prop::sample::select(vec![OperationResult::Succeeded, OperationResult::Canceled, failed]);
    let put = (".{0,20}", prop::option::of(links), any::<u64>(), leaving.clone());
    let put = put.prop_map(|(id, link, edition, leaving)| {
        let (cluster, created) = (ClusterId(1), Timestamp::from_millis(5));
        let (body, notes) = (Body(b"{}".as_slice().into()), Body::default());
        ResourceChange::Put(Resource { id, cluster, link, edition, created, body, notes, leaving })
    });
    let open = (any::<u64>(), ".{0,20}", prop::option::of(any::<u32>()), results.clone());
    let waits = prop::collection::btree_set(any::<u64>().prop_map(MaintenanceId), 0..4);
    let open = (open, waits).prop_map(|((number, name, token, result), waits)| {
        ResourceChange::Opened(Operation {
            number,
            name: name.clone(),
            about: name,
            cluster: ClusterId(1),
            token,
            ended: waits.is_empty().then(|| Timestamp::from_millis(7)),
            waits: waits.into_iter().collect(),
            began: Timestamp::from_millis(6),
            result,
        })
    });
    let marked = (".{0,20}", leaving).prop_map(|(key, leaving)| ResourceChange::Marked { key, leaving });
    let ended = (any::<u64>(), results)
        .prop_map(|(work, result)| ResourceChange::WorkEnded { maintenance: MaintenanceId(work), result });
    let removed = ".{0,20}".prop_map(ResourceChange::Removed);
    prop_oneof![put, open, marked, ended, removed].prop_map(ClusterEntry::Resource)
}

fn others() -> impl Strategy<Value = Record> {
    let addresses = prop::collection::vec(any::<IpAddr>(), 0..4);
    let tags = prop::collection::btree_map(".{0,20}", ".{0,20}", 0..4);
    let home = prop::option::of((".{0,20}", ".{0,20}"));
    let home = home.prop_map(|home| {
        home.map(|(resource_group, location)| ResourceGroupRef { resource_group, location })
    });
    let details =
        (addresses, tags, home).prop_map(|(addresses, tags, home)| MachineDetails { addresses, tags, home });
    let described = (any::<u32>(), details)
        .prop_map(|(machine, details)| ClusterEntry::Described { machine: MachineId(machine), details });
    let site = (".{0,20}", ".{0,20}", ".{0,20}").prop_map(|(location, subscription, resource_group)| {
        ClusterEntry::Site(Site { location, subscription, resource_group })
    });
    let now = (any::<i64>(), any::<u64>()).prop_map(|(wall, steady)| Now {
        wall: Timestamp::from_millis(wall),
        steady: Steady::from_millis(steady),
    });
    let booted = (any::<[u8; 16]>(), any::<i64>())
        .prop_map(|(id, offset_millis)| Entry::Shared(Change::Booted(Boot { id, offset_millis })));
    let positioned = (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(number, term, records)| {
        Entry::Shared(Change::Positioned(StreamPosition { number, term, records }))
    });
    let failed = (any::<u64>(), any::<u32>(), ".{0,20}").prop_map(|(work, machine, reason)| {
        ClusterEntry::Failed { maintenance: MaintenanceId(work), target: MachineId(machine).into(), reason }
    });
    let reminded = (any::<u64>(), any::<u32>()).prop_map(|(work, host)| ClusterEntry::Reminded {
        maintenance: MaintenanceId(work),
        host: HostId(host),
    });
    let announcements = prop::collection::vec(any::<u64>().prop_map(MaintenanceId), 0..9);
    let unread = announcements.prop_map(ClusterEntry::Unread);
    let of_cluster =
        (any::<u32>(), prop_oneof![described, site, failed, reminded, unread, receipts(), resources()])
            .prop_map(|(cluster, change)| Entry::Cluster(ClusterId(cluster), change));
    (now, prop_oneof![4 => of_cluster, 1 => booted, 1 => positioned, 1 => Just(Entry::Shared(Change::Clock))])
        .prop_map(|(now, entry)| Record { now, entry })
}

proptest! {
    /// promise: D4
    #[test]
    fn every_change_is_read_as_it_was_written(history in histories()) {
        for (number, record) in (1..).zip(history) {
            let stored = record_to_stored(number, &record);
            prop_assert_eq!(record_from_stored(number, &stored), Ok(record));
            prop_assert_eq!(record_from_stored(number + 1, &stored), Err(Malformed::Checksum));
        }
    }

    /// promise: D4
    #[test]
    fn everything_else_is_read_as_it_was_written(record in others(), number in any::<u64>()) {
        prop_assert_eq!(record_from_stored(number, &record_to_stored(number, &record)), Ok(record));
    }

    /// promise: D4
    #[test]
    fn a_byte_that_is_another_is_noticed(record in prop_oneof![changes(), others()], flip in 1u8..) {
        let stored = record_to_stored(7, &record);
        for place in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[place] ^= flip;
            prop_assert!(record_from_stored(7, &damaged).is_err(), "{place}");
        }
    }

    /// promise: D4
    #[test]
    fn an_end_that_comes_too_early_is_noticed(record in prop_oneof![changes(), others()]) {
        let stored = record_to_stored(7, &record);
        let content = &stored[SEAL_BYTES..];
        prop_assert_eq!(record_from_content(content), Ok(record));
        for end in 0..stored.len() {
            prop_assert!(record_from_stored(7, &stored[..end]).is_err());
        }
        // Without a checksum, too.
        for end in 0..content.len() {
            prop_assert!(record_from_content(&content[..end]).is_err());
        }
        prop_assert_eq!(record_from_content(&[content, &[0]].concat()), Err(Malformed::Long));
    }

    /// promise: D4
    #[test]
    fn no_bytes_make_the_reader_panic(
        record in changes(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        drop(record_from_content(&noise));
        let mut content = record_to_stored(7, &record)[SEAL_BYTES..].to_vec();
        for (place, byte) in damage {
            *place.get_mut(&mut content) = byte;
        }
        // Whatever is read is something that can be written.
        if let Ok(record) = record_from_content(&content) {
            prop_assert_eq!(record_from_stored(0, &record_to_stored(0, &record)), Ok(record));
        }
    }
}

#[test]
fn random_histories_have_changes_of_almost_every_kind() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    for _ in 0..100 {
        let history = histories().new_tree(&mut runner).unwrap().current();
        let names = history.iter().filter_map(|record| match &record.entry {
            Entry::Cluster(_, ClusterEntry::Rules(change)) => Some(format!("{change:?}")),
            _ => None,
        });
        kinds.extend(names.map(|name| name.split([' ', '{', '(']).next().unwrap().to_owned()));
    }
    assert!(kinds.len() >= 24, "{kinds:?}");
    for kind in ["UpgradePolicyChanged", "BatchUpgraded", "RollingEnded", "MachineForgotten", "MachineMoved"]
    {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}
