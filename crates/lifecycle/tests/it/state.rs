//! The state of the rules, over random fleets and random histories: the journal gives it again, so do its rows; indexes find
//! what a scan finds; a copy stays as it was; a decision changes nothing.

use std::collections::BTreeSet;

use forewarn_lifecycle::*;
use forewarn_observer::random::{build, layouts, random_operations};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::invariants::live;

/// Every machine is found by its name, in its tenant, in any case; and no other machine is.
fn check_names(cluster: &Cluster) -> Result<(), TestCaseError> {
    for (id, machine) in cluster.machines() {
        let name = machine.name.as_str();
        let all = || cluster.machines().filter(|(_, other)| other.name == machine.name);
        prop_assert!(cluster.machines_named(name).eq(all()), "{}", name);
        prop_assert!(cluster.machines_named_in_any_case(&name.to_uppercase()).eq(all()), "{}", name);
        prop_assert_eq!(cluster.machine_named(machine.tenant, name), Some(id));
    }
    for (id, tenant) in cluster.tenants() {
        prop_assert_eq!(cluster.tenant_named(tenant.name.as_str()), Some(id));
        prop_assert_eq!(cluster.machine_named(id, "none"), None);
    }
    for (id, host) in cluster.hosts() {
        prop_assert_eq!(cluster.host_named(host.name.as_str()), Some(id));
    }
    for (id, set) in cluster.scale_sets() {
        prop_assert_eq!(cluster.scale_set_named(set.name.as_str()), Some(id));
    }
    prop_assert_eq!(cluster.machines_named("none").count(), 0);
    Ok(())
}

/// The open hosts of each zone are ranked by the number of their machines.
fn check_ranks_of_hosts(cluster: &Cluster) -> Result<(), TestCaseError> {
    let is_open = |host: &Host| {
        let is_free = host.work.is_none() && host.mode.is_none();
        host.health == Health::Healthy && is_free && host.attention == HostAttention::Unneeded
    };
    let open = || cluster.hosts().filter(|(_, host)| is_open(host));
    let zones: BTreeSet<_> = open().map(|(_, host)| host.zone).collect();
    prop_assert!(cluster.open_zones().eq(zones.iter().copied()));
    for zone in zones {
        let mut ranked: Vec<_> = open().filter(|(_, host)| host.zone == zone).collect();
        ranked.sort_by_key(|(id, host)| (host.machines().len(), *id));
        prop_assert!(cluster.open_hosts_by_load(zone).eq(ranked));
    }
    for (id, host) in cluster.hosts() {
        let is_coming = |machine: MachineId| {
            let mut actions = cluster.pending_of(machine).filter_map(|pending| pending.action(machine));
            actions.any(|action| action.impact.destination() == Some(id))
        };
        let listed = cluster.machines().filter(|(machine, known)| known.host == id || is_coming(*machine));
        prop_assert!(listed.map(|(machine, _)| machine).eq(host.machines().iter().copied()));
    }
    Ok(())
}

proptest! {
    /// promise: D1
    #[test]
    fn rows_taken_at_any_moment_give_the_running_state(layout in layouts(), history in random_operations()) {
        let world = live(&layout, &history);
        let mut cluster = Cluster::new(Seed([7; 16]));
        for (number, (now, change)) in world.journal.iter().enumerate() {
            cluster.evolve(*now, change);
            // Between two changes of one decision, too: the indexes of that moment are derived as well.
            if number % 5 == 0 || number + 1 == world.journal.len() {
                let mut restoring = Restoring::new();
                for row in cluster.clone().into_rows() {
                    prop_assert_eq!(restoring.add(row), Ok(()));
                }
                prop_assert_eq!(&restoring.finish().expect("a head"), &cluster);
            }
        }
    }

    #[test]
    fn indexes_find_what_a_scan_finds(layout in layouts(), history in random_operations()) {
        let world = live(&layout, &history);
        let mut cluster = Cluster::new(Seed([7; 16]));
        for (now, change) in &world.journal {
            cluster.evolve(*now, change);
            check_names(&cluster)?;
            check_ranks_of_hosts(&cluster)?;
        }
    }

    /// promise: C1
    #[test]
    fn a_copy_is_equal_and_stays_as_it_was(layout in layouts(), history in random_operations()) {
        let mut world = build(&layout);
        let mut copies = Vec::new();
        for (number, random_operation) in history.iter().enumerate() {
            if number % 7 == 0 {
                let mut copy = world.cluster.clone();
                prop_assert_eq!(&copy, &world.cluster);
                // Sometimes the original is put aside, and life goes on in the copy.
                if number % 2 == 0 {
                    std::mem::swap(&mut copy, &mut world.cluster);
                }
                copies.push((world.journal.len(), format!("{copy:?}"), copy));
            }
            world.happen(random_operation);
        }
        // Each copy is still the state of its moment: by its own words, and by the journal up to then.
        for (length, shown, copy) in &copies {
            let mut replayed = Cluster::new(Seed([7; 16]));
            world.journal[..*length].iter().for_each(|(now, change)| drop(replayed.evolve(*now, change)));
            prop_assert_eq!(&replayed, copy);
            prop_assert_eq!(shown, &format!("{copy:?}"));
        }
    }

    /// promise: D1
    #[test]
    fn replaying_the_journal_gives_the_running_state(
        layout in layouts(),
        history in random_operations(),
        rest in random_operations(),
    ) {
        let mut world = live(&layout, &history);
        prop_assert_eq!(&world.replayed(), &world.cluster);
        // A crash: only the journal is left. What was under way is commanded again, and life goes on as it would have.
        let before: Vec<_> = world.cluster.unfinished().collect();
        world.cluster = world.replayed();
        prop_assert_eq!(before, world.cluster.unfinished().collect::<Vec<_>>());
        rest.iter().for_each(|random_operation| world.happen(random_operation));
        prop_assert_eq!(&world.replayed(), &world.cluster);
        prop_assert!(world.observer.broken.is_empty(), "{:#?}", world.observer.broken);
    }

    /// promise: D1
    #[test]
    fn deciding_changes_nothing_and_depends_on_nothing_else(layout in layouts(), history in random_operations()) {
        let world = live(&layout, &history);
        let before = world.cluster.clone();
        let machines: Vec<_> = world.cluster.machines().map(|(id, _)| id).collect();
        for machine in machines {
            for command in [Command::Restart(machine), Command::Delete(machine), Command::Redeploy(machine)] {
                let first = world.cluster.decide(world.now, &command);
                prop_assert_eq!(first, before.decide(world.now, &command));
            }
        }
        prop_assert_eq!(before, world.cluster);
    }
}
