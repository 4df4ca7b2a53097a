//! The cost of a fleet file: it depends on the file, not on the fleet.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use forewarn_control::request::{ClusterRequest, CommandBatch, RequestContext};
use forewarn_control::*;
use forewarn_lifecycle::{MachineId, Now, Seed, reads};
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

/// A file of blocks of 1,000 machines: 50 hosts, 100 standalone machines with addresses, three uniform scale sets of
/// 100 instances, and a flexible one of 600. The instances are listed, or only counted.
fn blocks(count: usize, is_listed: bool) -> Fleet {
    let mut text = String::new();
    for block in 0..count {
        for host in 0..50 {
            writeln!(text, "[[host]]\nname = 'h{block}-{host}'").unwrap();
        }
        for vm in 0..100 {
            let host = vm % 50;
            writeln!(text, "[[vm]]\nname = 'v{block}-{vm}'\nhost = 'h{block}-{host}'").unwrap();
            writeln!(text, "addresses = ['10.0.{block}.{vm}']").unwrap();
        }
        for (set, orchestration, instances) in
            [(0, "uniform", 100), (1, "uniform", 100), (2, "uniform", 100), (3, "flexible", 600)]
        {
            writeln!(text, "[[scale_set]]\nname = 's{block}-{set}'\norchestration = '{orchestration}'")
                .unwrap();
            let instance =
                |n: usize| format!("{{ host = 'h{block}-{}', update_domain = {} }}", n % 50, n % 5);
            match is_listed {
                true => {
                    let list: Vec<_> = (0..instances).map(instance).collect();
                    writeln!(text, "instance = [{}]", list.join(",")).unwrap();
                }
                false => writeln!(text, "instances = {instances}").unwrap(),
            }
        }
    }
    Fleet::parse(&text).unwrap()
}

/// The rows that comparing a piece with the fleet, and carrying it out, read.
fn reads_of(state: &mut ControlState, piece: &Fleet) -> u64 {
    let (id, now, none) = (ClusterId::DEFAULT, Now::at_millis(0), BTreeSet::new());
    let before = reads();
    let cluster = state.cluster_arc(id).unwrap();
    let details = |machine: MachineId| Some(cluster.details_of(machine));
    let current = CurrentFleet { cluster: cluster.rules(), site: cluster.site(), details: &details, now };
    let differences = difference(current, piece, UnlistedObjects::Keep).unwrap();
    let commands = differences.into_iter().filter_map(|one| one.command).collect();
    let request = ClusterRequest::Commands(CommandBatch { commands, context: RequestContext::default() });
    let hypervisor = HypervisorKind::Simulated;
    let environment = Environment { now, audit: Chain::default(), hypervisor, revision: 0, jammed: &none };
    let decision = decide_in_cluster(id, &cluster, &state.shared_arc(), &environment, &request).unwrap();
    *state = state.with_cluster(id, decision.state);
    reads() - before
}

const ONE_MORE: &str = "
host = [{ name = 'new' }]
vm = [{ name = 'v', host = 'h0-0', addresses = ['10.1.0.0'] }]
scale_set = [{ name = 'a', instances = 10 }, { name = 'b', instance = [{ host = 'h0-0' }, { host = 'h0-1' }] }]
";

/// promise: C4
#[test]
fn a_piece_reads_as_many_rows_in_a_large_fleet_as_in_a_small_one() {
    for is_listed in [true, false] {
        let [small, large] = [1, 10].map(|count| {
            let (fleet, mut state) = (blocks(count, is_listed), ControlState::new(Seed([7; 16])));
            let pieces: Vec<_> = fleet.pieces().iter().map(|piece| fleet.piece(piece)).collect();
            let machines = pieces.iter().map(Fleet::machine_count).sum::<usize>();
            assert_eq!(machines, 1_000 * count);
            let all: u64 = pieces.iter().map(|piece| reads_of(&mut state, piece)).sum();
            // Both fleets have 20 machines on each host.
            (all / machines as u64, reads_of(&mut state, &Fleet::parse(ONE_MORE).unwrap()))
        });
        assert!(
            large.0 <= small.0 + small.0 / 10,
            "for each machine, listed: {is_listed}, {small:?} {large:?}"
        );
        assert!(large.1 <= small.1 + 10, "for one more piece, listed: {is_listed}, {small:?} {large:?}");
    }
}
