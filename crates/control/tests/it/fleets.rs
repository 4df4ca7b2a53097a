//! Fleet files, and the differences between two fleets, case by case.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_control::*;
use forewarn_types::Span;

use forewarn_testkit::TestCluster;

/// Carries out every command that gives a cluster that fleet.
pub(crate) fn apply(town: &mut TestCluster, wanted: &Fleet, unmentioned: UnlistedObjects) -> Vec<Difference> {
    let differences = town.difference(wanted, unmentioned).unwrap();
    for command in differences.iter().filter_map(|difference| difference.command.as_ref()) {
        town.perform(command);
    }
    town.finish();
    differences
}

fn texts(differences: &[Difference]) -> Vec<&str> {
    differences.iter().map(|difference| difference.text.as_str()).collect()
}

/// A fleet file that says a bit of everything.
const FILE: &str = r#"
[site]
location = "north"

[[host]]
name = "h1"
zone = 1

[[host]]
name = "h2"

[[vm]]
name = "solo"
host = "h1"
terminate = "5m"
addresses = ["10.0.0.4"]
policy = { restart = "automatic" }

[[availability_set]]
name = "db"
machine = [
  { name = "db-0", host = "h1", tags = { role = "primary" } },
  { name = "db-1", host = "h2", update_domain = 1, spot = "deallocate" },
]

[[cloud_service]]
name = "shop"

[[scale_set]]
name = "web"
upgrade = "automatic"
os_image = true
instance = [{ host = "h1" }, { host = "h2", update_domain = 1 }]
"#;

fn fleet() -> Fleet {
    Fleet::parse(FILE).unwrap()
}

#[test]
fn a_fleet_file_says_what_is_there() {
    let mut town = TestCluster::empty();
    let done = apply(&mut town, &fleet(), UnlistedObjects::Keep);
    let expected = [
        "~ site: location",
        "+ host h1",
        "+ host h2",
        "+ vm solo on h1",
        "+ availability set db",
        "+ machine db/db-0 on h1",
        "+ machine db/db-1 on h2",
        "+ cloud service shop",
        "+ scale set web",
        "+ instance web_0 on h1",
        "+ instance web_1 on h2",
    ];
    assert_eq!(texts(&done), expected);
    let there = town.fleet();
    assert_eq!(there.site.location.as_deref(), Some("north"));
    assert_eq!(there.vms, fleet().vms);
    assert_eq!(there.availability_sets, fleet().availability_sets);
    let numbers: Vec<_> = there.scale_sets[0].instances.iter().map(|instance| instance.id).collect();
    assert_eq!(numbers, [Some(0), Some(1)]);
}

#[test]
fn what_is_no_fleet_file_is_refused() {
    for (text, words) in [
        ("hots = []", "unknown field"),
        ("[[vm]]\nname = 'solo'", "missing: host\n  hint: add host = …"),
        ("[[vm]]\nname = 'solo'\nhost = 'h1'\nupdate_domian = 1", "unknown field"),
        ("[[vm]]\nname = 'solo'\nhost = 'h1'\nspot = 'sometimes'", "unknown variant"),
        ("[[vm]]\nname = 'solo'\nhost = 'h1'\nterminate = '5x'", "not a duration"),
        ("[[vm]]\nname = 'solo'\nhost = 'h1'\naddresses = ['here']", "not an IP address\n  hint: "),
        ("[[host", "TOML"),
    ] {
        let bad = Fleet::parse(text).expect_err(text).to_string();
        assert!(bad.contains(words), "{text}: {bad}");
    }
}

/// promise: C4
#[test]
fn what_can_change_is_changed_in_place() {
    let mut town = TestCluster::empty();
    apply(&mut town, &fleet(), UnlistedObjects::Keep);
    let mut wanted = town.fleet();
    wanted.vms[0].terminate = Some(Span(Duration::from_secs(600)));
    wanted.vms[0].policy = PolicyEntry::default();
    wanted.vms[0].addresses.clear();
    wanted.availability_sets[0].machines[0].os_image = true;
    wanted.availability_sets[0].policy.all_down = ApproveWord::Asked;
    wanted.scale_sets[0].terminate = Some(Span(Duration::from_secs(300)));
    let pause = Span(Duration::from_hours(1));
    wanted.scale_sets[0].upgrade = UpgradeWord::Rolling(RollingEntry { batch_percent: 25, pause });
    wanted.scale_sets[0].policy.redeploy = ApproveWord::Automatic;
    wanted.scale_sets[0].instances[1].tags = BTreeMap::from([("role".to_owned(), "spare".to_owned())]);
    let done = apply(&mut town, &wanted, UnlistedObjects::Remove);
    let expected = [
        "~ solo: policy",
        "~ solo: terminate 5m -> 10m",
        "~ solo: addresses",
        "~ db: policy",
        "~ db/db-0: os_image off -> on",
        "~ web: upgrade automatic -> rolling, 25 % at a time, 1h between",
        "~ web: policy",
        "~ web: terminate off -> 5m",
        "~ web/web_1: tags",
    ];
    assert_eq!(texts(&done), expected);
    assert_eq!(town.fleet(), wanted);
}

/// promise: C4
#[test]
fn what_cannot_change_is_an_error() {
    type Change = (&'static str, fn(&mut Fleet));
    let changes: [Change; 8] = [
        ("the zone of h1 cannot", |fleet| fleet.hosts[0].zone = None),
        ("the update domain of solo cannot", |fleet| fleet.vms[0].update_domain = 1),
        ("the fault domain of solo cannot", |fleet| fleet.vms[0].fault_domain = 1),
        ("the priority of solo cannot", |fleet| fleet.vms[0].spot = Some(Eviction::Delete)),
        ("the priority of db/db-1 cannot", |fleet| fleet.availability_sets[0].machines[1].spot = None),
        ("the update domain of web_1 cannot", |fleet| fleet.scale_sets[0].instances[1].update_domain = 2),
        ("the priority of web cannot", |fleet| fleet.scale_sets[0].spot = Some(Eviction::Delete)),
        ("the orchestration of web cannot", |fleet| {
            fleet.scale_sets[0].orchestration = OrchestrationWord::Flexible;
        }),
    ];
    let mut town = TestCluster::empty();
    apply(&mut town, &fleet(), UnlistedObjects::Keep);
    for (words, change) in changes {
        let mut wanted = town.fleet();
        change(&mut wanted);
        let bad = town.difference(&wanted, UnlistedObjects::Keep).expect_err(words).to_string();
        assert!(bad.starts_with(words) && bad.contains("hint: delete it first"), "{words}: {bad}");
    }
}

#[test]
fn nothing_is_there_twice() {
    let twice: [fn(&mut Fleet); 6] = [
        |fleet| fleet.hosts.push(fleet.hosts[0].clone()),
        |fleet| fleet.vms.push(fleet.vms[0].clone()),
        |fleet| fleet.availability_sets.push(fleet.availability_sets[0].clone()),
        |fleet| {
            let machine = fleet.availability_sets[0].machines[0].clone();
            fleet.availability_sets[0].machines.push(machine);
        },
        |fleet| fleet.scale_sets.push(fleet.scale_sets[0].clone()),
        |fleet| fleet.scale_sets[0].instances[0].id = Some(1),
    ];
    for change in twice {
        let mut wanted = fleet();
        change(&mut wanted);
        let bad = TestCluster::empty().difference(&wanted, UnlistedObjects::Keep).unwrap_err().to_string();
        assert!(bad.ends_with(" is listed twice"), "{bad}");
    }
}

/// promise: C4
#[test]
fn an_error_of_an_entry_names_its_line() {
    let line = |text: &str| match town_with_everything()
        .difference(&Fleet::parse(text).unwrap(), UnlistedObjects::Keep)
    {
        Err(FleetFileError::Entry { place, .. }) => place.line_in_file(text),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        line("[[host]]\nname = 'h1'\nzone = 1\n\n[[host]]\nname = 'h2'\n[[host]]\nname = 'h1'\nzone = 1"),
        Some(8)
    );
    assert_eq!(line("[[host]]\nname = 'h1'\nzone = 1\n\n[[host]]\nname = 'h2'\nzone = 7"), Some(7));
    assert_eq!(line("\n\n[[vm]]\nname = 'solo'\nhost = 'h1'\nupdate_domain = 4"), Some(6));
    assert_eq!(line("\n\n[[vm]]\nname = 'solo'\nhost = 'h1'\nspot = 'delete'"), Some(6));
    let set = "[[availability_set]]\nname = 'db'\nmachine = [\n  { name = 'db-0', host = 'h1' },\n  { name = 'db-0', host = 'h1' },\n]";
    assert_eq!(line(set), Some(5));
    let twice = "[[scale_set]]\nname = 'web'\ninstance = [\n  { id = 4, host = 'h1' },\n\n  { id = 4, host = 'h1' },\n]";
    assert_eq!(line(twice), Some(6));
    // The file says nothing of it, so the entry is named.
    let orchestration =
        "[[scale_set]]\nname = 'new'\n[[scale_set]]\nname = 'web'\norchestration = 'flexible'";
    assert_eq!(line(orchestration), Some(5));
    assert_eq!(
        line(
            "[[cloud_service]]\nname = 'a'\n[[availability_set]]\nname = 'db'\n[[availability_set.machine]]\nname = 'db-1'\nhost = 'h2'\nupdate_domain = 1"
        ),
        Some(5)
    );
}

fn town_with_everything() -> TestCluster {
    let mut town = TestCluster::empty();
    apply(&mut town, &fleet(), UnlistedObjects::Keep);
    town
}

/// promise: C4
#[test]
fn every_difference_names_its_entry() {
    let differences = TestCluster::empty().difference(&fleet(), UnlistedObjects::Keep).unwrap();
    let places: Vec<_> = differences.iter().map(|one| one.place.pointer()).collect();
    let expected = [
        "/site",
        "/host/0",
        "/host/1",
        "/vm/0",
        "/availability_set/0",
        "/availability_set/0/machine/0",
        "/availability_set/0/machine/1",
        "/cloud_service/0",
        "/scale_set/0",
        "/scale_set/0/instance/0",
        "/scale_set/0/instance/1",
    ];
    assert_eq!(places, expected);
    let town = town_with_everything();
    let removals = town.difference(&Fleet::default(), UnlistedObjects::Remove).unwrap();
    assert!(removals.iter().all(|one| one.place.pointer().is_empty()), "{removals:?}");
}

/// promise: C4
#[test]
fn instances_are_admitted_by_number_in_whatever_order_a_file_lists_them() {
    let file = "host = [{ name = 'h1' }]\n[[scale_set]]\nname = 'web'\n\
                instance = [{ id = 7, host = 'h1' }, { host = 'h1' }, { id = 0, host = 'h1' }]";
    let wanted = Fleet::parse(file).unwrap();
    let mut town = TestCluster::empty();
    let done = apply(&mut town, &wanted, UnlistedObjects::Keep);
    let instances = ["+ instance web_0 on h1", "+ instance web_1 on h1", "+ instance web_7 on h1"];
    assert_eq!(texts(&done)[2..], instances);
    assert_eq!(done[2].place.pointer(), "/scale_set/0/instance/2", "the entry of the file");
    for unmentioned in [UnlistedObjects::Keep, UnlistedObjects::Remove] {
        assert_eq!(town.difference(&wanted, unmentioned), Ok(Vec::new()));
    }
}

/// promise: C4
#[test]
fn a_machine_on_another_host_is_a_difference_whose_command_records_a_move() {
    let mut town = TestCluster::empty();
    apply(&mut town, &Fleet::parse(FLAT).unwrap(), UnlistedObjects::Keep);
    let mut wanted = town.fleet();
    wanted.vms[0].host = "h2".to_owned();
    wanted.availability_sets[0].machines[0].host = "h2".to_owned();
    wanted.scale_sets[0].instances[1].host = "h1".to_owned();
    let done = apply(&mut town, &wanted, UnlistedObjects::Keep);
    let expected = ["~ solo: host h1 -> h2", "~ db/db-0: host h1 -> h2", "~ web/web_1: host h2 -> h1"];
    assert_eq!(texts(&done), expected);
    for one in &done {
        assert!(matches!(one.command, Some(NamedCommand::Move { force: false, .. })), "{one:?}");
    }
    assert_eq!(town.fleet(), wanted);
}

/// promise: C4
#[test]
fn a_machine_leaves_a_host_before_another_one_of_its_tenant_comes_there() {
    let file = "host = [{ name = 'h1' }, { name = 'h2' }, { name = 'h3' }]\n\
                availability_set = [{ name = 'db', machine = [\
                { name = 'db-0', host = 'h1', update_domain = 0 }, { name = 'db-1', host = 'h2', update_domain = 1 }] }]";
    let mut town = TestCluster::empty();
    apply(&mut town, &Fleet::parse(file).unwrap(), UnlistedObjects::Keep);
    let mut wanted = town.fleet();
    wanted.availability_sets[0].machines[0].host = "h2".to_owned();
    wanted.availability_sets[0].machines[1].host = "h3".to_owned();
    let done = apply(&mut town, &wanted, UnlistedObjects::Keep);
    assert_eq!(texts(&done), ["~ db/db-1: host h2 -> h3", "~ db/db-0: host h1 -> h2"]);
    assert_eq!(town.fleet(), wanted);
    // Two that trade places are named, in the order of the file.
    let mut wanted = town.fleet();
    wanted.availability_sets[0].machines[0].host = "h3".to_owned();
    wanted.availability_sets[0].machines[1].host = "h2".to_owned();
    let both = town.difference(&wanted, UnlistedObjects::Keep).unwrap();
    assert_eq!(texts(&both), ["~ db/db-0: host h2 -> h3", "~ db/db-1: host h3 -> h2"]);
}

/// promise: C4
#[test]
fn every_part_that_cannot_be_changed_is_named_at_once() {
    let mut town = TestCluster::empty();
    apply(&mut town, &Fleet::parse(FLAT).unwrap(), UnlistedObjects::Keep);
    let mut wanted = town.fleet();
    wanted.hosts[0].zone = Some(7);
    wanted.vms[0].update_domain = 3;
    wanted.availability_sets[0].machines[0].fault_domain = 2;
    wanted.scale_sets[0].instances[1].update_domain = 4;
    let said = town.difference(&wanted, UnlistedObjects::Keep).unwrap_err().to_string();
    assert_eq!(
        said,
        "these cannot be changed: the zone of h1, the update domain of solo, the fault domain of db/db-0, the update domain of \
         web_1\n  hint: delete what they belong to first, or leave them as they are"
    );
}

/// Hosts without zones, so that machines may be on any of them.
const FLAT: &str = "
host = [{ name = 'h1' }, { name = 'h2' }]
vm = [{ name = 'solo', host = 'h1' }]
availability_set = [{ name = 'db', machine = [{ name = 'db-0', host = 'h1' }] }]
scale_set = [{ name = 'web', instance = [{ host = 'h1' }, { host = 'h2' }] }]
";

/// promise: C4
#[test]
fn what_is_not_mentioned_is_forgotten_if_that_is_asked_for() {
    let mut town = TestCluster::empty();
    apply(&mut town, &Fleet::parse(FLAT).unwrap(), UnlistedObjects::Keep);
    let wanted = Fleet { site: town.site.clone().into(), ..Fleet::default() };
    let first = apply(&mut town, &wanted, UnlistedObjects::Forget);
    let expected = [
        "- vm solo, forgotten",
        "- machine db/db-0, forgotten",
        "- db, once its machines are gone",
        "- instance web_0, forgotten",
        "- instance web_1, forgotten",
        "- scale set web, once its machines are gone",
        "- host h1, once its machines are gone",
        "- host h2, once its machines are gone",
    ];
    assert_eq!(texts(&first), expected);
    let commands = first.iter().filter_map(|one| one.command.as_ref());
    assert!(commands.into_iter().all(|command| matches!(command, NamedCommand::Forget { .. })), "{first:?}");
    let second = apply(&mut town, &wanted, UnlistedObjects::Forget);
    assert_eq!(texts(&second), ["- db", "- scale set web", "- host h1", "- host h2"]);
    assert_eq!(town.fleet(), wanted);
}

#[test]
fn a_scale_set_without_instances_gets_another_policy() {
    let mut town = TestCluster::empty();
    town.run_text(r#"{"command":"admit_scale_set","name":"web"}"#);
    let mut wanted = town.fleet();
    wanted.scale_sets[0].policy.restart = ApproveWord::Automatic;
    apply(&mut town, &wanted, UnlistedObjects::Keep);
    assert_eq!(town.fleet(), wanted);
}

#[test]
fn an_instance_is_told_from_a_machine_of_the_same_name() {
    let mut town = TestCluster::empty();
    let mut wanted = fleet();
    wanted.availability_sets[0].machines[0].name = "web_0".to_owned();
    apply(&mut town, &wanted, UnlistedObjects::Keep);
    let mut wanted = town.fleet();
    wanted.scale_sets[0].instances[0].tags = BTreeMap::from([("role".to_owned(), "first".to_owned())]);
    apply(&mut town, &wanted, UnlistedObjects::Keep);
    assert_eq!(town.fleet(), wanted);
    wanted.scale_sets[0].instances.remove(0);
    apply(&mut town, &wanted, UnlistedObjects::Remove);
    assert_eq!(town.fleet(), wanted);
}

/// promise: Z1
#[test]
fn what_a_file_does_not_say_of_the_site_stays() {
    let site = |text: &str| Fleet::parse(text).unwrap();
    let mut town = TestCluster::empty();
    apply(
        &mut town,
        &site("[site]\nlocation = 'a'\nsubscription = 's'\nresource_group = 'g'"),
        UnlistedObjects::Keep,
    );
    let todo = |wanted: &str| {
        let todo = town.difference(&site(wanted), UnlistedObjects::Remove).unwrap();
        todo.into_iter().map(|one| (one.text, one.command)).collect::<Vec<_>>()
    };
    assert_eq!(todo(""), []);
    assert_eq!(todo("[site]\nresource_group = 'g'"), []);
    let change = SiteChange { location: Some("b".to_owned()), ..SiteChange::default() };
    let expected = ("~ site: location".to_owned(), Some(NamedCommand::ChangeSite(change)));
    assert_eq!(todo("[site]\nlocation = 'b'"), [expected]);
}

/// promise: C4
#[test]
fn what_is_not_mentioned_stays_unless_it_is_to_go() {
    let mut town = TestCluster::empty();
    apply(&mut town, &fleet(), UnlistedObjects::Keep);
    let mut wanted = Fleet { site: town.site.clone().into(), ..Fleet::default() };
    assert_eq!(town.difference(&wanted, UnlistedObjects::Keep), Ok(Vec::new()));
    wanted.hosts = fleet().hosts[..1].to_vec();
    let first = apply(&mut town, &wanted, UnlistedObjects::Remove);
    let expected = [
        "- vm solo",
        "- machine db/db-0",
        "- machine db/db-1",
        "- db, once its machines are gone",
        "- shop",
        "- instance web_0",
        "- instance web_1",
        "- scale set web, once its machines are gone",
        "- host h2, once its machines are gone",
    ];
    assert_eq!(texts(&first), expected);
    let later = first.iter().filter(|difference| difference.command.is_none()).count();
    assert_eq!(later, 3);
    let second = apply(&mut town, &wanted, UnlistedObjects::Remove);
    assert_eq!(texts(&second), ["- db", "- scale set web", "- host h2"]);
    assert_eq!(town.fleet(), wanted);
}

/// promise: C4
#[test]
fn a_byte_order_mark_before_a_fleet_file_is_skipped() {
    let marked = Fleet::parse(&format!("\u{feff}{FILE}")).unwrap();
    assert_eq!(marked, Fleet::parse(FILE).unwrap());
    assert!(Fleet::parse(&format!("\u{feff}\u{feff}{FILE}")).is_err(), "one mark is enough");
}

/// promise: C4
#[test]
fn the_file_of_the_reference_is_applied_as_it_stands() {
    let reference = include_str!("../../../../docs/reference/fleet.md");
    let blocks = reference.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), 1);
    for block in blocks {
        let wanted = Fleet::parse(block).unwrap();
        assert_eq!(wanted.try_in_memory(TargetCluster::Empty), Ok(()));
        let mut town = TestCluster::empty();
        apply(&mut town, &wanted, UnlistedObjects::Keep);
        assert_eq!(town.difference(&wanted, UnlistedObjects::Remove), Ok(Vec::new()));
        assert_eq!(town.fleet().machine_count(), wanted.machine_count());
    }
}
