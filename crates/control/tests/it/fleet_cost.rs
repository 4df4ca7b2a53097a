//! The cost of a fleet file: it depends on the file, not on the fleet.

use std::cell::Cell;

use forewarn_control::*;
use forewarn_lifecycle::MachineId;
use forewarn_testkit::TestCluster;

use crate::fleets::apply;

/// A cluster with that many standalone machines, and as many in sets of 100.
fn cluster_of(machines: usize) -> TestCluster {
    let mut text = "host = [{ name = 'h0' }, { name = 'h1' }, { name = 'h2' }, { name = 'h3' }]\n".to_owned();
    for number in 0..machines {
        text += &format!("[[vm]]\nname = 'v{number}'\nhost = 'h{}'\n", number % 4);
    }
    for set in 0..machines / 100 {
        let instances: Vec<_> = (0..100).map(|_| "{ host = 'h0' }").collect();
        text += &format!("[[scale_set]]\nname = 's{set}'\ninstance = [{}]\n", instances.join(","));
    }
    let mut town = TestCluster::empty();
    apply(&mut town, &Fleet::parse(&text).unwrap(), UnlistedObjects::Keep);
    town
}

/// The differences of a file, and the number of machines whose details were read.
fn compared(town: &TestCluster, file: &str, rest: UnlistedObjects) -> (Vec<String>, usize) {
    let visited = Cell::new(0);
    let details = |machine: MachineId| {
        visited.set(visited.get() + 1);
        town.details.get(&machine)
    };
    let current = CurrentFleet { cluster: &town.rules, site: &town.site, details: &details, now: town.now };
    let differences = difference(current, &Fleet::parse(file).unwrap(), rest).unwrap();
    (differences.into_iter().map(|one| one.text).collect(), visited.get())
}

const FILE: &str = "
host = [{ name = 'h1' }, { name = 'h9' }]
vm = [{ name = 'v7', host = 'h3', terminate = '5m' }, { name = 'new', host = 'h9' }]
scale_set = [{ name = 's0', instance = [{ id = 5, host = 'h0' }, { id = 100, host = 'h0' }] }]
";

/// promise: C4
#[test]
fn a_file_visits_the_machines_that_it_names_however_large_the_fleet_is() {
    for machines in [100, 400] {
        let (differences, visited) = compared(&cluster_of(machines), FILE, UnlistedObjects::Keep);
        let expected =
            ["+ host h9", "~ v7: terminate off -> 5m", "+ vm new on h9", "+ instance s0_100 on h0"];
        assert_eq!(differences, expected);
        assert_eq!(visited, 2, "v7 and s0_5, in a fleet of {machines}");
    }
}

/// promise: C4
#[test]
fn a_removal_copies_no_machine_that_stays() {
    let (differences, visited) = compared(&cluster_of(100), FILE, UnlistedObjects::Forget);
    let removals = differences.iter().filter(|text| text.starts_with('-'));
    assert_eq!(removals.count(), 99 + 99 + 3, "machines, instances, and hosts");
    assert_eq!(visited, 2);
}
