//! Fleet files in pieces, and their trial in memory.

use forewarn_control::*;
use forewarn_testkit::TestCluster;

use crate::fleets::apply;

/// A file with hosts, standalone machines, sets of 300 and placed instances: more than three pieces.
fn large() -> Fleet {
    let mut text = "site = { location = 'north' }\n".to_owned();
    for host in 0..40 {
        text += &format!("[[host]]\nname = 'h{host}'\n");
    }
    for vm in 0..1_500 {
        text += &format!("[[vm]]\nname = 'v{vm}'\nhost = 'h{}'\n", vm % 40);
    }
    for set in 0..3 {
        let machine = |n| format!("{{ name = 'm{n}', host = 'h{}', update_domain = {} }}", n % 40, n % 40);
        let machines: Vec<_> = (0..300).map(machine).collect();
        text += &format!("[[availability_set]]\nname = 'a{set}'\nmachine = [{}]\n", machines.join(","));
    }
    text += "[[cloud_service]]\nname = 'empty'\n[[scale_set]]\nname = 's'\ninstances = 900\n";
    Fleet::parse(&text).unwrap()
}

/// promise: C4
#[test]
fn a_large_file_is_applied_in_pieces_to_the_same_fleet() {
    let (whole, mut at_once, mut in_pieces) = (large(), TestCluster::empty(), TestCluster::empty());
    apply(&mut at_once, &whole, UnlistedObjects::Keep);
    let pieces = whole.pieces();
    assert_eq!(pieces.iter().map(|piece| piece.entries).collect::<Vec<_>>(), [1_040, 800, 600, 900]);
    for piece in &pieces {
        let part = whole.piece(piece);
        assert!(part.machine_count() <= PIECE_ENTRIES_MAX, "{piece:?}");
        apply(&mut in_pieces, &part, UnlistedObjects::Keep);
    }
    let (mut once, mut pieces) = (at_once.fleet(), in_pieces.fleet());
    assert_eq!(once.machine_count(), 1_500 + 900 + 900);
    // Placed instances: the same number, wherever they are.
    assert_eq!(once.scale_sets.remove(0).instances.len(), pieces.scale_sets.remove(0).instances.len());
    assert_eq!(once, pieces);
    assert_eq!(in_pieces.difference(&whole, UnlistedObjects::Remove), Ok(Vec::new()));
}

#[test]
fn a_file_of_a_thousand_machines_is_one_piece() {
    let mut fleet = large();
    fleet.scale_sets.clear();
    fleet.vms.truncate(100);
    assert_eq!((fleet.machine_count(), fleet.pieces().len()), (1_000, 1));
    assert_eq!(fleet.piece(&fleet.pieces()[0]), fleet);
    fleet.vms.push(VmEntry { name: "one-more".to_owned(), ..fleet.vms[0].clone() });
    assert_eq!(fleet.pieces().len(), 2);
    assert_eq!(Fleet::default().pieces().len(), 1);
}

#[test]
fn a_piece_has_no_more_bytes_than_a_request() {
    let mut fleet = large();
    fleet.scale_sets.clear();
    let tag = "x".repeat(TAG_CHARS_MAX);
    let tags =
        |vm: usize| (0..TAGS_MAX).map(|tag_number| (format!("{vm}-{tag_number}"), tag.clone())).collect();
    fleet.vms.truncate(900);
    fleet.vms.iter_mut().enumerate().for_each(|(number, vm)| vm.tags = tags(number));
    let pieces = fleet.pieces();
    assert!(pieces.len() > 2, "{pieces:?}");
    for piece in &pieces {
        let body = serde_json::to_vec(&fleet.piece(piece)).unwrap();
        assert!(body.len() <= FLEET_BYTES_MAX, "{}", body.len());
    }
}

/// promise: C4
#[test]
fn an_entry_of_a_piece_has_a_position_in_the_file() {
    let whole = large();
    let second = &whole.pieces()[1];
    let in_file = |pointer: &str| second.in_file(&FleetPosition::from_pointer(pointer)).pointer().to_owned();
    assert_eq!(in_file("/vm/3/host"), "/vm/1003/host");
    assert_eq!(in_file("/availability_set/0/machine/7"), "/availability_set/0/machine/7");
    assert_eq!(in_file("/site"), "/site");
    let third = &whole.pieces()[2];
    let place = third.in_file(&FleetPosition::from_pointer("/availability_set/0/machine/7/host"));
    assert_eq!(place.pointer(), "/availability_set/1/machine/7/host");
}

fn rejected(fleet: &Fleet, target: TargetCluster) -> (String, String) {
    let rejection = fleet.try_in_memory(target).unwrap_err();
    let place = rejection.place().map(|place| place.pointer().to_owned()).unwrap_or_default();
    (place, rejection.to_string().lines().next().unwrap_or_default().to_owned())
}

/// promise: C4
#[test]
fn a_trial_finds_the_entry_that_the_rules_refuse_in_whichever_piece_it_is() {
    assert_eq!(large().try_in_memory(TargetCluster::Empty), Ok(()));
    assert_eq!(large().try_in_memory(TargetCluster::Unknown), Ok(()));
    type Case = (fn(&mut Fleet), &'static str, &'static str);
    let cases: [Case; 4] = [
        (|fleet| fleet.vms[1_400].name = "v3".to_owned(), "/vm/1400/name", "v3 is listed twice"),
        (|fleet| fleet.vms[1_400].name = "a b".to_owned(), "/vm/1400/name", "invalid name \"a b\""),
        (
            |fleet| {
                fleet.vms[3].addresses.push("10.0.0.1".parse().unwrap());
                fleet.vms[1_400].addresses.push("10.0.0.1".parse().unwrap());
            },
            "/vm/1400/addresses",
            "address 10.0.0.1 is already used by v3",
        ),
        (
            |fleet| fleet.availability_sets[2].machines[1].update_domain = 9,
            "/availability_set/2/machine/41/update_domain",
            "",
        ),
    ];
    for (change, place, words) in cases {
        let mut fleet = large();
        change(&mut fleet);
        for target in [TargetCluster::Empty, TargetCluster::Unknown] {
            let (found, said) = rejected(&fleet, target);
            assert_eq!(found, place, "{said}");
            assert!(said.starts_with(words), "{said}");
        }
    }
}

/// promise: C4
#[test]
fn a_cluster_that_is_not_known_may_have_the_hosts_of_a_file() {
    let mut fleet = large();
    fleet.hosts.clear();
    assert_eq!(fleet.try_in_memory(TargetCluster::Unknown), Ok(()));
    assert_eq!(
        rejected(&fleet, TargetCluster::Empty),
        ("/vm/0/host".to_owned(), "no such host: h0".to_owned())
    );
}
