//! Changes, told one by one.

use std::time::Duration;

use forewarn_testkit::TestCluster;

/// What has been told since, in short.
fn told(town: &mut TestCluster) -> Vec<(String, String)> {
    town.told.drain(..).map(|happening| (happening.kind, happening.text)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_fleet_that_joins_is_told() {
    let mut town = TestCluster::with_fleet();
    let expected = [
        ("admitted", "host h1 was added"),
        ("admitted", "host h2 was added"),
        ("admitted", "tenant solo was added"),
        ("admitted", "machine solo was added"),
        ("admitted", "scale set web was added"),
        ("admitted", "tenant web was added"),
        ("admitted", "machine web_0 was added"),
        ("admitted", "machine web_1 was added"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
}

/// promise: C5
#[test]
fn the_life_of_an_event_is_told_in_words() {
    let mut town = TestCluster::with_fleet();
    told(&mut town);
    town.enrol("web");
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    let id = town.told[1].events[0].clone();
    assert!(town.told.iter().all(|happening| happening.tenants == ["web"]));
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    town.finish();
    let approved = format!("web has approved {id}, by its owner");
    let expected = [
        ("enrolled", "web is enrolled"),
        ("announced", "Reboot of web_0 (restart by the owner) is announced, not before 2026-01-01T00:15:00Z"),
        ("approved", &approved),
        ("started", "Reboot of web_0 (restart by the owner) has started, by approval"),
        ("completed", "Reboot of web_0 (restart by the owner) completed for web_0"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
}

#[test]
fn what_befalls_hosts_is_told_in_words() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    told(&mut town);
    town.run_text(r#"{"command":"degrade_host","host":"h2"}"#);
    town.run_text(r#"{"command":"recover_host","host":"h2"}"#);
    town.run_text(r#"{"command":"brake_on"}"#);
    town.run_text(r#"{"command":"change_settings","failure":"redeploy"}"#);
    town.run_text(r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    let expected = [
        ("health", "host h2 is expected to fail"),
        ("health", "host h2 is healthy"),
        ("brake", "the brake is on: nothing starts"),
        ("changed", "settings changed"),
        ("changed", "scale set web model changed to version 2"),
    ];
    let all = told(&mut town);
    for pair in pairs(&expected) {
        assert!(all.contains(&pair), "{pair:?}: {all:#?}");
    }
}

/// promise: C5
#[test]
fn what_is_taken_back_names_who_was_told() {
    let mut town = TestCluster::with_fleet();
    town.enrol("solo");
    town.enrol("web");
    town.run_text(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let announced = town.told.last().unwrap().clone();
    assert_eq!(
        (announced.kind.as_str(), announced.tenants.as_slice()),
        ("announced", &["solo".to_owned(), "web".to_owned()][..])
    );
    assert_eq!(announced.events.len(), 2);
    let event = announced.events[0].clone();
    town.run_text(&format!(r#"{{"command":"cancel","event":"{event}"}}"#));
    let withdrawn = town.told.iter().find(|happening| happening.kind == "withdrawn").unwrap();
    assert_eq!(withdrawn.text, "Freeze of solo, web_0 (update of h1) is cancelled");
    assert_eq!(withdrawn.tenants, ["solo", "web"]);
    let json = serde_json::to_string(withdrawn).unwrap();
    assert!(json.starts_with(r#"{"at":"2026-01-01T00:00:00Z","kind":"withdrawn","text":"#), "{json}");
}

/// Kind, tenants, machines, hosts, number of events, work and rollout of the last that was told.
type Concerns<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str], usize, Option<u64>, Option<u64>);

fn assert_last(town: &TestCluster, expected: Concerns<'_>) {
    let last = town.told.last().unwrap();
    let lists = [&last.tenants, &last.machines, &last.hosts]
        .map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    let found: Concerns<'_> =
        (&last.kind, &lists[0], &lists[1], &lists[2], last.events.len(), last.work, last.rollout);
    assert_eq!(found, expected, "{}", last.text);
}

/// promise: C5
#[test]
fn what_happens_to_a_machine_names_it_and_where_it_is() {
    let mut town = TestCluster::with_fleet();
    assert_last(&town, ("admitted", &["web"], &["web/web_1"], &["h2"], 0, None, None));
    town.enrol("web");
    assert_last(&town, ("enrolled", &["web"], &[], &[], 0, None, None));
    town.run_text(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let both = &["solo/solo", "web/web_0"];
    assert_last(&town, ("announced", &["solo", "web"], both, &["h1"], 1, Some(0), Some(0)));
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    assert_last(&town, ("started", &["solo", "web"], both, &["h1"], 1, Some(0), Some(0)));
    let approved = town.told.iter().find(|happening| happening.kind == "approved").unwrap();
    assert_eq!((approved.machines.as_slice(), approved.work), (&["web/web_0".to_owned()][..], Some(0)));
    town.finish();
    // Each is told of its own.
    assert_last(&town, ("completed", &["solo"], &["solo/solo"], &["h1"], 0, Some(0), Some(0)));
    town.told.pop();
    assert_last(&town, ("completed", &["web"], &["web/web_0"], &["h1"], 1, Some(0), Some(0)));
}

/// promise: C5
#[test]
fn a_machine_that_moves_concerns_both_hosts() {
    let mut town = TestCluster::with_fleet();
    town.run_text(r#"{"command":"admit_host","name":"h3"}"#);
    town.run_text(r#"{"command":"redeploy","machine":"solo"}"#);
    assert_last(&town, ("started", &["solo"], &["solo/solo"], &["h1", "h3"], 0, Some(0), None));
    town.finish();
    assert_last(&town, ("completed", &["solo"], &["solo/solo"], &["h1", "h3"], 0, Some(0), None));
}

/// promise: C5
#[test]
fn what_holds_work_up_is_told() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    town.run_text(r#"{"command":"brake_on"}"#);
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    assert_last(&town, ("held", &["web"], &["web/web_0"], &["h1"], 1, Some(0), None));
    let text = "Reboot of web_0 (restart by the owner) is held by the brake";
    assert_eq!(town.told.last().unwrap().text, text);
}

/// promise: C5
#[test]
fn what_becomes_of_scale_sets_and_profiles_is_told() {
    let mut town = TestCluster::with_fleet();
    told(&mut town);
    town.run_text(r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    town.run_text(r#"{"command":"upgrade_instance","machine":"web_0"}"#);
    town.run_text(r#"{"command":"change_profile","machine":"solo","os_image":true}"#);
    assert_last(&town, ("changed", &["solo"], &["solo/solo"], &[], 0, None, None));
    town.run_text(r#"{"command":"admit_scale_set","name":"spare"}"#);
    town.run_text(r#"{"command":"change_policy","tenant":"spare","policy":{"restart":"automatic"}}"#);
    town.run_text(r#"{"command":"remove_scale_set","scale_set":"spare"}"#);
    let expected = [
        ("changed", "scale set web model changed to version 2"),
        ("changed", "machine web_0 was upgraded to model 2"),
        ("changed", "machine solo profile changed"),
        ("admitted", "scale set spare was added"),
        ("admitted", "tenant spare was added"),
        ("changed", "scale set spare policy for new placement groups changed"),
        ("changed", "spare policy changed"),
        ("removed", "spare was removed"),
        ("removed", "scale set spare was removed"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
}

#[test]
fn a_rolling_upgrade_is_told_batch_by_batch() {
    let mut town = TestCluster::with_fleet();
    told(&mut town);
    town.run_text(
        r#"{"command":"change_upgrade_policy","scale_set":"web","upgrade":{"rolling":{"batch_percent":50,"pause":"1h"}}}"#,
    );
    town.run_text(r#"{"command":"revise_model","scale_set":"web"}"#);
    assert_last(&town, ("waits", &["web"], &[], &[], 0, None, None));
    town.pass(Duration::from_hours(1));
    assert_last(&town, ("ended", &["web"], &[], &[], 0, None, None));
    let expected = [
        ("changed", "scale set web upgrade policy changed: rolling, 50 % at a time, 1h between"),
        ("changed", "scale set web model changed to version 2"),
        ("changed", "machine web_0 was upgraded to model 2"),
        ("waits", "scale set web waits until 2026-01-01T01:00:00Z, then upgrades the next batch"),
        ("changed", "machine web_1 was upgraded to model 2"),
        ("ended", "scale set web completed its rolling upgrade"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
    town.run_text(r#"{"command":"change_upgrade_policy","scale_set":"web","upgrade":"rolling"}"#);
    town.run_text(r#"{"command":"revise_model","scale_set":"web"}"#);
    town.pass(Duration::ZERO);
    let kinds: Vec<_> = told(&mut town).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["changed", "changed", "changed", "changed", "ended"], "without a pause nothing waits");
}

/// promise: C5
#[test]
fn a_long_list_of_names_is_short_in_words_and_whole_in_the_list() {
    let mut town = TestCluster::empty();
    town.run_text(r#"{"command":"admit_host","name":"h1"}"#);
    town.run_text(r#"{"command":"admit_cloud_service","name":"shop"}"#);
    for number in 0..12 {
        let machine = format!(r#"{{"name":"shop_{number}","host":"h1"}}"#);
        town.run_text(&format!(r#"{{"command":"admit_machine","tenant":"shop","machine":{machine}}}"#));
    }
    town.run_text(r#"{"command":"reboot_hosts","hosts":["h1"]}"#);
    let started = town.told.last().unwrap();
    let names = "shop_0, shop_1, shop_2, shop_3, shop_4, shop_5, shop_6, shop_7 and 4 more";
    assert_eq!(started.text, format!("restart of h1, for {names}, has started at once"));
    assert_eq!(started.machines.len(), 12);
    let told = started.clone().into_entry((0, "default"), "forewarn", Some(3));
    assert_eq!((told.machines.len(), told.because, told.by.as_str()), (12, Some(3), "forewarn"));
}
