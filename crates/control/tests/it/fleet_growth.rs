//! Scale sets of a fleet file with a number of instances, which the server places.

use std::collections::BTreeMap;

use forewarn_control::*;
use forewarn_testkit::TestCluster;

use crate::fleets::apply;

fn file(instances: u16, more: &str) -> Fleet {
    let text = format!(
        "host = [{{ name = 'h1', zone = 1 }}, {{ name = 'h2', zone = 2 }}, {{ name = 'h3', zone = 2 }}]\n\
         [[scale_set]]\nname = 'web'\ninstances = {instances}\n{more}"
    );
    Fleet::parse(&text).unwrap()
}

/// The number of instances on each host.
fn loads(town: &TestCluster) -> BTreeMap<String, usize> {
    let mut loads = BTreeMap::new();
    for instance in &town.fleet().scale_sets[0].instances {
        *loads.entry(instance.host.clone()).or_default() += 1;
    }
    loads
}

fn loads_of<const N: usize>(loads: [(&str, usize); N]) -> BTreeMap<String, usize> {
    loads.into_iter().map(|(host, count)| (host.to_owned(), count)).collect()
}

fn texts(differences: &[Difference]) -> Vec<&str> {
    differences.iter().map(|difference| difference.text.as_str()).collect()
}

/// promise: C4
#[test]
fn instances_are_spread_over_the_hosts_of_the_file_once() {
    let mut town = TestCluster::empty();
    let done = apply(&mut town, &file(6, ""), UnlistedObjects::Keep);
    assert_eq!(texts(&done)[3..5], ["+ scale set web", "+ instance web_0 on h1"]);
    assert_eq!(done[4].place.pointer(), "/scale_set/0/instances");
    assert_eq!(loads(&town), loads_of([("h1", 2), ("h2", 2), ("h3", 2)]));
    for rest in [UnlistedObjects::Keep, UnlistedObjects::Remove, UnlistedObjects::Forget] {
        assert_eq!(town.difference(&file(6, ""), rest), Ok(Vec::new()), "the second time nothing changes");
    }
    let shown = Fleet::parse(&town.fleet().print().unwrap()).unwrap();
    assert_eq!(shown.scale_sets[0].instances.len(), 6);
    let mut copy = TestCluster::empty();
    apply(&mut copy, &shown, UnlistedObjects::Keep);
    assert_eq!(copy.fleet(), town.fleet(), "the file of `fleet show` gives the same fleet");
}

/// promise: C4
#[test]
fn a_larger_number_adds_instances_and_leaves_the_others() {
    let mut town = TestCluster::empty();
    apply(&mut town, &file(2, ""), UnlistedObjects::Keep);
    let before = town.fleet().scale_sets[0].instances.clone();
    let done = apply(&mut town, &file(4, ""), UnlistedObjects::Remove);
    assert_eq!(texts(&done), ["+ instance web_2 on h3", "+ instance web_3 on h1"]);
    assert_eq!(town.fleet().scale_sets[0].instances[..2], before[..]);
}

/// promise: C4
#[test]
fn a_smaller_number_removes_instances_only_if_that_is_asked_for() {
    let mut town = TestCluster::empty();
    apply(&mut town, &file(5, ""), UnlistedObjects::Keep);
    let kept = apply(&mut town, &file(3, ""), UnlistedObjects::Keep);
    assert_eq!(texts(&kept), ["~ web: instances 5 -> 3"]);
    assert_eq!(kept[0].command, None, "it is listed, and not applied");
    let forgotten = town.difference(&file(4, ""), UnlistedObjects::Forget).unwrap();
    let machine = "web/web_4".to_owned();
    assert_eq!(forgotten[0].command, Some(NamedCommand::Forget { machine }));
    let removed = apply(&mut town, &file(3, ""), UnlistedObjects::Remove);
    assert_eq!(removed.len(), 2);
    assert!(texts(&removed).iter().all(|text| text.starts_with("- instance web_")), "{removed:?}");
    assert_eq!(town.fleet().scale_sets[0].instances.len(), 3);
}

/// promise: C4
#[test]
fn a_placement_limits_the_hosts() {
    for (more, expected) in [
        ("placement = { hosts = ['h2'] }", loads_of([("h2", 4)])),
        ("placement = { zones = [2] }", loads_of([("h2", 2), ("h3", 2)])),
        ("placement = { zones = [1, 2] }", loads_of([("h1", 2), ("h2", 1), ("h3", 1)])),
    ] {
        let mut town = TestCluster::empty();
        apply(&mut town, &file(4, more), UnlistedObjects::Keep);
        assert_eq!(loads(&town), expected, "{more}");
    }
}

/// promise: C4
#[test]
fn hosts_that_are_to_go_get_no_instances() {
    let mut file = file(30, "orchestration = 'flexible'");
    file.hosts.iter_mut().for_each(|host| host.zone = None);
    let mut town = TestCluster::new(9);
    let done = apply(&mut town, &file, UnlistedObjects::Keep);
    assert_eq!(done.iter().filter(|one| one.text.starts_with("+ instance")).count(), 30);
    assert_eq!(loads(&town).len(), 9, "the hosts of the cluster are used, too");

    let mut town = TestCluster::new(9);
    apply(&mut town, &file, UnlistedObjects::Remove);
    assert_eq!(loads(&town), loads_of([("h1", 10), ("h2", 10), ("h3", 10)]));
    assert_eq!(town.fleet().hosts.len(), 3);
}

/// promise: C4
#[test]
fn the_choice_of_hosts_is_that_of_a_scale_out() {
    let hosts: Vec<_> = (0..40).map(|n| format!("{{ name = 'h{n}', zone = {} }}", n % 3)).collect();
    let sets = "[[scale_set]]\nname = 'a'\ninstances = 17\n[[scale_set]]\nname = 'b'\ninstances = 120\n\
                [[scale_set]]\nname = 'c'\norchestration = 'flexible'\ninstances = 60\nplacement = { zones = [0, 2] }\n";
    let mut town = TestCluster::empty();
    let file = Fleet::parse(&format!("host = [{}]\n{sets}", hosts.join(","))).unwrap();
    apply(&mut town, &file, UnlistedObjects::Keep);

    let mut other = TestCluster::empty();
    apply(&mut other, &Fleet { scale_sets: Vec::new(), ..file.clone() }, UnlistedObjects::Keep);
    for set in &file.scale_sets {
        let zones = set.placement.clone().unwrap_or_default().zones;
        let new = NewScaleSet {
            name: set.name.clone(),
            orchestration: set.orchestration,
            upgrade: set.upgrade,
            cpus: set.cpus,
            memory: set.memory,
            spot: None,
            terminate: None,
            os_image: false,
            policy: set.policy,
            instances: set.count.unwrap(),
            hosts: None,
            zones,
            fault_domains: None,
        };
        let commands = ScaleSetCommand::CreateScaleSet(new).commands(&other.rules).unwrap();
        commands.iter().for_each(|command| drop(other.perform(command)));
    }
    assert_eq!(town.fleet(), other.fleet());
}

/// promise: C4
#[test]
fn a_number_that_cannot_be_is_refused_at_its_line() {
    let refused = |text: &str| {
        let wanted = Fleet::parse(text).unwrap();
        match TestCluster::empty().difference(&wanted, UnlistedObjects::Keep) {
            Err(FleetFileError::Entry { place, text: said }) => (place.line_in_file(text), said),
            other => panic!("{text}: {other:?}"),
        }
    };
    let (line, said) = refused("[[scale_set]]\nname = 'a'\n\ninstances = 2");
    assert_eq!(line, Some(4));
    assert!(said.starts_with("no host can take more instances of a: 2 of 2 do not fit"), "{said}");
    let (line, said) = refused("[[scale_set]]\nname = 'a'\ninstances = 2\ninstance = [{ host = 'h1' }]");
    assert_eq!((line, said.lines().next().unwrap()), (Some(3), "a has a number and a list of instances"));
    let (line, said) = refused("[[scale_set]]\nname = 'a'\nplacement = { zones = [1] }");
    assert_eq!(
        (line, said.lines().next().unwrap()),
        (Some(3), "a has a placement, but no number of instances")
    );
    let (line, said) = refused("[[scale_set]]\nname = 'a'\ninstances = 1001");
    assert_eq!((line, said.as_str()), (Some(3), "a scale set has at most 1000 instances, not 1001"));
    let (line, said) = refused(
        "host = [{ name = 'h1' }]\n[[scale_set]]\nname = 'a'\ninstances = 1\nplacement = { hosts = ['h9'] }",
    );
    assert_eq!((line, said.lines().next().unwrap()), (Some(4), "no such host: h9"));
}

/// promise: C4
#[test]
fn a_placement_is_checked_also_if_no_instance_needs_it() {
    for (placement, text) in [
        ("{ fault_domains = 1001 }", "a scale set is spread over 1 to 1000 fault domains, not 1001"),
        ("{ hosts = ['a b'] }", "invalid name \"a b\""),
    ] {
        let error = file(0, &format!("placement = {placement}")).check().unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
    }
}
