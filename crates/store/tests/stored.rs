//! The stored form, over random histories: it is read as it was written, and nothing else is taken for it.

#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test world may be blunt"
)]

#[path = "../../lifecycle/tests/world/mod.rs"]
mod world;

use std::collections::BTreeSet;
use std::net::IpAddr;

use forewarn_control::shared::ClusterId;
use forewarn_control::{Boot, Entry, Record};
use forewarn_control::{Details, Home, Site};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, Steady, Timestamp};
use forewarn_store::{Malformed, record_from_content, record_from_stored, record_to_stored};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use world::random::{Happening, Layout, build, happenings, layouts};

/// What stands in front of content: a version and a checksum.
const SEAL_BYTES: usize = 9;

fn records(layout: &Layout, history: &[Happening]) -> Vec<Record> {
    let mut world = build(layout);
    history.iter().for_each(|happening| world.happen(happening));
    let journal = world.journal.into_iter();
    journal.map(|(now, change)| Record { now, entry: Entry::Change(ClusterId(0), change) }).collect()
}

fn histories() -> impl Strategy<Value = Vec<Record>> {
    (layouts(), happenings()).prop_map(|(layout, history)| records(&layout, &history))
}

/// One record of a random history.
fn changes() -> impl Strategy<Value = Record> {
    (histories(), any::<prop::sample::Index>()).prop_map(|(records, which)| which.get(&records).clone())
}

fn others() -> impl Strategy<Value = Record> {
    let addresses = prop::collection::vec(any::<IpAddr>(), 0..4);
    let tags = prop::collection::btree_map(".{0,20}", ".{0,20}", 0..4);
    let home = prop::option::of((".{0,20}", ".{0,20}"));
    let home = home.prop_map(|home| home.map(|(resource_group, location)| Home { resource_group, location }));
    let details =
        (addresses, tags, home).prop_map(|(addresses, tags, home)| Details { addresses, tags, home });
    let described = (any::<u32>(), details).prop_map(|(machine, details)| Entry::Described {
        cluster: ClusterId(2),
        machine: MachineId(machine),
        details,
    });
    let site = (".{0,20}", ".{0,20}", ".{0,20}").prop_map(|(location, subscription, resource_group)| {
        Entry::Site(ClusterId(1), Site { location, subscription, resource_group })
    });
    let now = (any::<i64>(), any::<u64>()).prop_map(|(wall, steady)| Now {
        wall: Timestamp::from_millis(wall),
        steady: Steady::from_millis(steady),
    });
    let booted = (any::<[u8; 16]>(), any::<i64>())
        .prop_map(|(id, offset_millis)| Entry::Booted(Boot { id, offset_millis }));
    let failed = (any::<u64>(), any::<u32>(), ".{0,20}").prop_map(|(work, machine, reason)| Entry::Failed {
        cluster: ClusterId(3),
        maintenance: MaintenanceId(work),
        machine: MachineId(machine),
        reason,
    });
    let announcements = prop::collection::vec((any::<u32>(), any::<u64>()), 0..9);
    let unread = announcements.prop_map(|all| {
        let announced = |(cluster, work)| (ClusterId(cluster), MaintenanceId(work));
        Entry::Unread(all.into_iter().map(announced).collect())
    });
    (now, prop_oneof![described, site, booted, failed, unread, Just(Entry::Clock)])
        .prop_map(|(now, entry)| Record { now, entry })
}

proptest! {
    #[test]
    fn every_change_is_read_as_it_was_written(history in histories()) {
        for (number, record) in (1..).zip(history) {
            let stored = record_to_stored(number, &record);
            prop_assert_eq!(record_from_stored(number, &stored), Ok(record));
            prop_assert_eq!(record_from_stored(number + 1, &stored), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn everything_else_is_read_as_it_was_written(record in others(), number in any::<u64>()) {
        prop_assert_eq!(record_from_stored(number, &record_to_stored(number, &record)), Ok(record));
    }

    #[test]
    fn a_byte_that_is_another_is_noticed(record in prop_oneof![changes(), others()], flip in 1u8..) {
        let stored = record_to_stored(7, &record);
        for place in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[place] ^= flip;
            prop_assert!(record_from_stored(7, &damaged).is_err(), "{place}");
        }
    }

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
            Entry::Change(_, change) => Some(format!("{change:?}")),
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
