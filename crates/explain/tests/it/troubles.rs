//! Explanations of trouble: the usual ones, and why a terminate notification was not what somebody expected.

use forewarn_control::*;
use forewarn_explain::*;
use forewarn_imds::Edition;

use crate::tale::*;

/// promise: C6
#[test]
fn the_usual_troubles_are_seen() {
    let mut tale = Tale::new();
    let hints = tale.machine(WEB_0).hints;
    assert!(hints[0].starts_with("tenant web is not enrolled: "), "{hints:?}");
    assert_eq!(hints[1], "it has no notice of deletion: a delete causes no Terminate event");
    tale.enrol("web");
    tale.ask("socket", r#"{"command":"change_model","scale_set":"web","terminate":"10m"}"#);
    tale.poll(WEB_0, Edition::V2017_11_01);
    let told = tale.machine(WEB_0);
    let upgrade = "`forewarn scaleset upgrade web web_0`, or `az vmss update-instances --resource-group g --name web --instance-ids 0`";
    let model = format!(
        "instance web_0 runs model 1 of 2: no notice of deletion, where model 2 has PT10M; upgrade: {upgrade}"
    );
    let blind = "machine web_0 polls with api-version 2017-11-01, which does not include Terminate events: 2019-01-01 does";
    assert_eq!(told.hints, [model.as_str(), blind]);
    assert_eq!(told.last_poll.unwrap().edition.as_deref(), Some("2017-11-01"));
    let rolling = r#"{"rolling":{"batch_percent":50,"pause":"1h"}}"#;
    tale.ask(
        "socket",
        &format!(r#"{{"command":"change_upgrade_policy","scale_set":"web","upgrade":{rolling}}}"#),
    );
    tale.ask("socket", r#"{"command":"revise_model","scale_set":"web"}"#);
    let model = &tale.machine(WEB_0).hints[0];
    assert!(
        model.ends_with("; instances get it batch by batch, the next at 2026-01-01T01:00:00Z"),
        "{model}"
    );
}

/// promise: C6
#[test]
fn a_notice_that_could_not_be_enabled_is_explained_by_the_api_version() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.refuse("virtualMachineScaleSets/other", "2018-10-01", UNKNOWN_MEMBER);
    tale.refuse("virtualmachinescalesets/WEB", "2018-10-01", UNKNOWN_MEMBER);
    let cause = "a PUT of WEB was refused (BadRequest): api-version 2018-10-01 does not have scheduledEventsProfile, 2019-03-01 and newer do";
    let told = tale.scale_set("web").unwrap();
    assert_eq!(told.refused, [tale.refusals[1].clone()]);
    assert_eq!(told.hints.last().unwrap(), cause);
    let machine = tale.machine(WEB_0);
    assert_eq!((machine.refused.len(), machine.hints.last().unwrap().as_str()), (1, cause));
    // What was refused for another reason is shown, and speaks for itself. The newest comes first.
    tale.pass(MINUTE);
    tale.refuse("virtualMachineScaleSets/web/virtualMachines/0", "2024-07-01", "not so");
    let machine = tale.machine(WEB_0);
    assert_eq!(
        machine.refused.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(),
        ["not so", UNKNOWN_MEMBER]
    );
    assert_eq!(machine.hints.last().unwrap(), cause);
    assert_eq!(tale.machine(WEB_0 + 1).refused.len(), 1);
    assert_eq!(tale.machine(0).refused, [], "solo is another");
    let id = tale.ask("token alice", RESTART).events[0].id.clone();
    assert_eq!(tale.event(&id).unwrap().refused.len(), 2);
    // A scale set that could not even be made is known by what was refused.
    let absent = tale.scale_set("Other").unwrap();
    assert_eq!((absent.scale_set, absent.refused.len(), absent.hints.len()), (None, 1, 1));
    assert_eq!(tale.scale_set("nothing"), None);
}

/// promise: C6
#[test]
fn a_not_before_that_surprises_is_explained_by_the_model_that_counts() {
    let mut tale = Tale::new();
    tale.enrol("web");
    for (version, length) in [(2, "6m"), (3, "5m"), (4, "7m30s"), (5, "10m")] {
        let change = format!(r#"{{"command":"change_model","scale_set":"web","terminate":"{length}"}}"#);
        tale.ask("socket", &change);
        if version == 3 {
            tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_0"}"#);
        }
    }
    let id = tale.ask("socket", r#"{"command":"delete","machine":"web_0"}"#).events[0].id.clone();
    tale.poll(WEB_0, Edition::V2020_07_01);
    let told = tale.event(&id).unwrap();
    assert_eq!(told.not_before.unwrap().to_string(), "2026-01-01T00:05:00Z");
    let upgrade = |name: &str, number: u8| {
        format!(
            "upgrade: `forewarn scaleset upgrade web {name}`, or `az vmss update-instances --resource-group g --name web --instance-ids {number}`"
        )
    };
    let first =
        format!("instance web_0 runs model 3 of 5: PT5M, where model 5 has PT10M; {}", upgrade("web_0", 0));
    assert_eq!(told.hints, std::slice::from_ref(&first));
    assert_eq!(tale.machine(WEB_0).hints, std::slice::from_ref(&first));
    let other = format!(
        "instance web_1 runs model 1 of 5: no notice of deletion, where model 5 has PT10M; {}",
        upgrade("web_1", 1)
    );
    let set = tale.scale_set("web").unwrap();
    assert_eq!(set.summary, "Model 5 has PT10M. There are 2 instances, 2 with an older model");
    assert_eq!((set.hints, set.coming.len(), set.enrolled), (vec![other, first], 1, true));
    // A model that differs in something else does not change when anything happens.
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    tale.ask("socket", r#"{"command":"revise_model","scale_set":"web"}"#);
    let hint = &tale.machine(WEB_0 + 1).hints[0];
    assert!(hint.starts_with("instance web_1 runs model 5 of 6: PT10M, as model 6 has; upgrade: "), "{hint}");
}

/// promise: C6
#[test]
fn a_terminate_that_nobody_saw_is_explained() {
    let mut tale = Tale::new();
    let set = tale.scale_set("web").unwrap();
    assert!(set.hints[0].starts_with("tenant web is not enrolled: "), "{:?}", set.hints);
    let enable = "model 1 has no notice of deletion: a delete causes no Terminate event; enable: `forewarn scaleset set web --terminate-notification on`, \
                  or `az vmss update --resource-group g --name web --enable-terminate-notification true --terminate-notification-time 5`";
    assert_eq!((set.hints.len(), set.hints[1].as_str()), (2, enable));
    assert_eq!(set.summary, "Model 1 has no notice of deletion. There are 2 instances, with this model");
    tale.poll(WEB_0, Edition::V2017_11_01);
    tale.poll(WEB_0 + 1, Edition::V2017_11_01);
    let blind = "machines web_0, web_1 poll with api-version 2017-11-01, which does not include Terminate events: 2019-01-01 does";
    assert_eq!(tale.scale_set("web").unwrap().hints[2], blind);
    // When it is gone, the trail says why it was not told.
    let gone = |tale: &Tale, name: &str| {
        let subject = Subject::Machine { cluster: "default".to_owned(), name: name.to_owned() };
        tale.scene(&subject, |scene| explain_machine(scene, ExplainedMachine::Removed(name))).unwrap().hints
    };
    tale.ask("socket", r#"{"command":"delete","machine":"solo"}"#);
    tale.finish();
    assert_eq!(
        gone(&tale, "solo/solo"),
        ["it was deleted without a Terminate event: tenant solo is not enrolled"]
    );
    tale.enrol("web");
    tale.ask("socket", r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    tale.ask("socket", r#"{"command":"delete","machine":"web_0"}"#);
    tale.finish();
    let why = "it was deleted without a Terminate event: web_0 runs model 1 of 2: no notice of deletion";
    assert_eq!(gone(&tale, "web/web_0"), [why]);
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    tale.ask("socket", r#"{"command":"deallocate","machine":"web_1"}"#);
    tale.finish();
    tale.ask("socket", r#"{"command":"delete","machine":"web_1"}"#);
    let why = "it was deleted without a Terminate event: web_1 is deallocated and cannot receive events";
    assert_eq!(gone(&tale, "web/web_1"), [why]);
}

/// promise: C6
#[test]
fn spot_machines_have_no_notice_whatever_is_done() {
    let mut tale = Tale::new();
    tale.ask("socket", r#"{"command":"admit_scale_set","name":"cheap","spot":"delete"}"#);
    tale.ask("socket", r#"{"command":"admit_instance","scale_set":"cheap","instance":{"host":"h1"}}"#);
    tale.enrol("cheap");
    let machine = find_machine(&tale.town.rules, "cheap_0").unwrap();
    let none = "spot machines have no notice of deletion: a delete causes no Terminate event";
    assert_eq!(tale.machine(machine.0).hints, [none]);
    let none = "its instances are spot machines, which have no notice of deletion";
    assert_eq!(tale.scale_set("cheap").unwrap().hints, [none]);
}

/// promise: T1
#[test]
fn work_that_waits_for_room_names_the_hosts_without_room() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.ask("socket", r#"{"command":"admit_host","name":"h3","cpus":2}"#);
    tale.ask("socket", r#"{"command":"resize_instances","scale_set":"web","cpus":3}"#);
    let outcome = tale.ask("socket", r#"{"command":"degrade_host","host":"h1","fails_in":"10m"}"#);
    let id = outcome.events[0].id.clone();
    tale.pass(std::time::Duration::from_mins(15));
    let blockers = tale.event(&id).unwrap().blockers;
    let held = "held: no other host can take a machine";
    assert!(
        blockers[0].starts_with(&format!("{held}: web_0 needs 3 CPUs; h3 has 2 of 2 CPUs free")),
        "{blockers:?}"
    );
    tale.scope = Some("web");
    assert_eq!(tale.event(&id).unwrap().blockers, [held], "a tenant learns nothing about hosts");
}
