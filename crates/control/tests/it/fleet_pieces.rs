//! Fleet files in pieces, and their trial in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::request::{ClusterRequest, CommandBatch, RequestContext};
use forewarn_control::*;
use forewarn_lifecycle::{Now, Seed};
use forewarn_testkit::TestCluster;

use crate::fleets::apply;

/// A file with hosts, standalone machines, sets of 300 and placed instances: eleven pieces.
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
    let entries: Vec<_> = pieces.iter().map(|piece| piece.entries).collect();
    assert_eq!(entries, [290, 250, 250, 250, 250, 250, 300, 300, 300, 0, 900]);
    for piece in &pieces {
        let part = whole.piece(piece);
        let sets = part.availability_sets.len() + part.scale_sets.len();
        assert!(part.machine_count() <= PIECE_ENTRIES_MAX || sets == 1, "{piece:?}");
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
    assert_eq!(fleet.pieces().len(), 5, "standalone machines, and each set");
    assert_eq!(Fleet::default().pieces().len(), 1);
    let text: String = (0..1_001).map(|set| format!("[[cloud_service]]\nname = 'c{set}'\n")).collect();
    assert_eq!(Fleet::parse(&text).unwrap().pieces().len(), 5, "sets without machines");
}

#[test]
fn a_piece_has_no_more_bytes_than_a_request() {
    let mut fleet = large();
    fleet.scale_sets.clear();
    let tag = "…".repeat(TAG_CHARS_MAX);
    let tags =
        |vm: usize| (0..TAGS_MAX).map(|tag_number| (format!("{vm}-{tag_number}"), tag.clone())).collect();
    fleet.vms.truncate(300);
    fleet.vms.iter_mut().enumerate().for_each(|(number, vm)| vm.tags = tags(number));
    let few = Fleet { availability_sets: Vec::new(), ..fleet.clone() };
    for fleet in [fleet, few] {
        let pieces = fleet.pieces();
        assert!(fleet.piece(&pieces[0]).vms.len() < PIECE_ENTRIES_MAX, "{pieces:?}");
        for piece in &pieces {
            let body = serde_json::to_vec(&fleet.piece(piece)).unwrap();
            assert!(body.len() <= FLEET_BYTES_MAX, "{}", body.len());
        }
    }
}

/// promise: C4
#[test]
fn an_entry_of_a_piece_has_a_position_in_the_file() {
    let whole = large();
    let second = &whole.pieces()[1];
    let in_file = |pointer: &str| second.in_file(&FleetPosition::from_pointer(pointer)).pointer().to_owned();
    assert_eq!(in_file("/vm/3/host"), "/vm/253/host");
    assert_eq!(in_file("/availability_set/0/machine/7"), "/availability_set/0/machine/7");
    assert_eq!(in_file("/site"), "/site");
    let of_second_set = &whole.pieces()[7];
    let place = of_second_set.in_file(&FleetPosition::from_pointer("/availability_set/0/machine/7/host"));
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

/// The audit entries of a file that is applied to an empty cluster in one request.
fn entries_of(fleet: &Fleet) -> Vec<Arc<AuditEntry>> {
    let differences = TestCluster::empty().difference(fleet, UnlistedObjects::Keep).unwrap();
    let commands = differences.into_iter().filter_map(|one| one.command).collect();
    let request = ClusterRequest::Commands(CommandBatch { commands, context: RequestContext::default() });
    let (state, none) = (ControlState::new(Seed([7; 16])), BTreeSet::new());
    let environment = Environment {
        now: Now::at_millis(0),
        audit: Chain::default(),
        hypervisor: HypervisorKind::Simulated,
        revision: 0,
        jammed: &none,
    };
    let (id, shared) = (ClusterId::DEFAULT, state.shared_arc());
    decide_in_cluster(id, &state.cluster_arc(id).unwrap(), &shared, &environment, &request).unwrap().audit
}

fn many() -> Fleet {
    let text = "host = [{ name = 'h1' }, { name = 'h2' }]\nvm = [{ name = 'a', host = 'h1' }, { name = 'b', host = 'h2' }]\n\
                [[scale_set]]\nname = 's'\ninstances = 150\n[[availability_set]]\nname = 'one'\n\
                machine = [{ name = 'm', host = 'h1' }]\n[[cloud_service]]\nname = 'none'\n";
    Fleet::parse(text).unwrap()
}

#[test]
fn a_large_request_has_one_audit_entry_for_many_objects_of_a_tenant() {
    let entries = entries_of(&many());
    let texts: Vec<_> = entries.iter().skip(1).map(|entry| entry.text.as_str()).collect();
    let groups: Vec<_> = texts.iter().filter(|text| text.contains("machines were added")).collect();
    assert_eq!(texts[0], "2 hosts were added");
    assert_eq!(texts[1..3], ["tenant a and machine a were added", "tenant b and machine b were added"]);
    assert_eq!(
        texts[3..6],
        ["tenant one and machine m were added", "tenant none was added", "scale set s was added"]
    );
    assert_eq!(groups.len(), 2, "of placement groups of 100 and 50 machines: {texts:?}");
    assert_eq!(texts.len(), 8);
    let mut chain = Chain::default();
    entries.iter().for_each(|entry| chain.verify(entry).unwrap());
    assert!(entries.iter().skip(1).all(|entry| entry.because == Some(1) && entry.kind == "admitted"));
}

/// promise: C4
#[test]
fn every_machine_of_a_large_request_is_named_by_one_entry_about_its_tenant() {
    let entries = entries_of(&many());
    let mut named = BTreeMap::<_, usize>::new();
    for entry in &entries[1..] {
        assert!(entry.tenants.len() <= 1, "callers may see one tenant only: {entry:?}");
        for machine in &entry.machines {
            *named.entry(machine.clone()).or_default() += 1;
            assert_eq!(machine.split_once('/').unwrap().0, entry.tenants[0]);
        }
        assert_eq!(entry.machines.is_empty(), entry.tenants.is_empty() || entry.text.contains(" none "));
    }
    assert_eq!(named.len(), 150 + 3);
    assert!(named.values().all(|count| *count == 1), "{named:?}");
    let few = Fleet { scale_sets: Vec::new(), ..many() };
    let texts: Vec<_> = entries_of(&few).iter().skip(1).map(|entry| entry.text.clone()).collect();
    assert_eq!(
        texts[..3],
        ["host h1 was added", "host h2 was added", "tenant a was added"],
        "a small request"
    );
}

/// In a scale set that has lost instances, later ones are in other placement groups than in a new one.
/// promise: C4
#[test]
fn a_trial_leaves_instances_of_uniform_sets_to_a_cluster_that_may_have_them() {
    let mut fleet = large();
    let set = "[[scale_set]]\nname = 'u'\ninstance = [{ host = 'h1', update_domain = 0 }, \
               { host = 'h1', update_domain = 1 }]";
    fleet.scale_sets.extend(Fleet::parse(set).unwrap().scale_sets);
    assert!(rejected(&fleet, TargetCluster::Empty).0.starts_with("/scale_set/1/instance/1"));
    assert_eq!(fleet.try_in_memory(TargetCluster::Unknown), Ok(()));
}
