//! Pushes: what is told of an event, and in which bytes.

use std::collections::BTreeMap;

use forewarn_control::push::*;
use forewarn_control::{AuditEntry, Chain, FailureView, NewAuditEntry, Site};
use forewarn_lifecycle::*;
use forewarn_types::Moment;
use proptest::prelude::*;
use serde_json::{Value, json};

use forewarn_observer::random::{Layout, RandomOperation, build, layouts, random_operations};
use forewarn_testkit::TestCluster;

/// Status, type, what the machines belong to, and machines of all that was told since.
fn told(town: &mut TestCluster) -> Vec<String> {
    let line = |notice: Notice| {
        let Notice { status, kind, resource, resources, not_before, .. } = notice;
        assert_eq!(not_before.is_some(), status == NoticeStatus::Scheduled);
        format!("{} {kind} {resource} {}", status.as_str(), resources.join(","))
    };
    town.noticed.drain(..).map(line).collect()
}

fn site() -> Site {
    Site {
        location: "westeurope".to_owned(),
        subscription: "00000000-0000-0000-0000-00000000f0e4".to_owned(),
        resource_group: "forewarn".to_owned(),
    }
}

fn freeze() -> Notice {
    Notice {
        event: "28512AF7-C957-4500-9BC4-842D6FB531E4".to_owned(),
        status: NoticeStatus::Scheduled,
        kind: "Freeze".to_owned(),
        source: "Platform".to_owned(),
        description: "Host server is undergoing maintenance.".to_owned(),
        duration: 9,
        not_before: Some(Moment(Timestamp::from_millis(1_767_226_500_000))),
        tenant: "web:2".to_owned(),
        resource: "virtualMachineScaleSets/web".to_owned(),
        resources: vec!["web_0".to_owned(), "web_1".to_owned()],
        failures: Vec::new(),
    }
}

fn entry(notices: Vec<Notice>) -> AuditEntry {
    let at = Moment(Timestamp::from_millis(1_767_225_600_250));
    Chain::default().seal(NewAuditEntry {
        at,
        cluster: "default".to_owned(),
        notices,
        ..NewAuditEntry::default()
    })
}

const DATA: &str = concat!(
    r#"{"resourceInfo":{"id":"/subscriptions/00000000-0000-0000-0000-00000000f0e4/resourceGroups/forewarn/providers/"#,
    r#"Microsoft.Compute/virtualMachineScaleSets/web/providers/Microsoft.Maintenance/scheduledevents/"#,
    r#"28512AF7-C957-4500-9BC4-842D6FB531E4","name":"28512AF7-C957-4500-9BC4-842D6FB531E4","#,
    r#""type":"microsoft.maintenance/scheduledevents","location":"westeurope","tags":{},"properties":{"#,
    r#""EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","EventStatus":"Scheduled","EventType":"Freeze","#,
    r#""ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Thu, 01 Jan 2026 00:15:00 GMT","#,
    r#""Description":"Host server is undergoing maintenance.","EventSource":"Platform","DurationInSeconds":9}},"#,
    r#""operationalInfo":{"resourceEventTime":"2026-01-01T00:00:00.25Z"},"apiVersion":"2020-07-01"}"#,
);
const SUBJECT: &str = "/subscriptions/00000000-0000-0000-0000-00000000f0e4/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachineScaleSets/web";

/// promise: W1
#[test]
fn a_push_is_a_cloud_event_of_these_bytes() {
    let push = &pushes(&entry(vec![freeze()]), &site())[0];
    let expected = format!(
        r#"{{"specversion":"1.0","id":"{}","source":"/subscriptions/00000000-0000-0000-0000-00000000f0e4","type":"{EVENT_TYPE}","subject":"{SUBJECT}","time":"2026-01-01T00:00:00.25Z","datacontenttype":"application/json","data":{DATA}}}"#,
        push.id
    );
    assert_eq!(push.cloud_event(), expected);
    assert_eq!(EVENT_TYPE, "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted");
}

/// promise: W1
#[test]
fn a_push_has_the_schema_of_event_grid_in_these_bytes() {
    let push = &pushes(&entry(vec![freeze()]), &site())[0];
    let expected = format!(
        r#"[{{"id":"{}","topic":"/subscriptions/00000000-0000-0000-0000-00000000f0e4","subject":"{SUBJECT}","data":{DATA},"eventType":"{EVENT_TYPE}","dataVersion":"1","metadataVersion":"1","eventTime":"2026-01-01T00:00:00.25Z"}}]"#,
        push.id
    );
    assert_eq!(push.event_grid(), expected);
}

/// What is on the wire for a machine and what is pushed say the same of an event, in the same order.
/// promise: W1
#[test]
fn an_event_has_the_members_of_a_document() {
    let mut town = TestCluster::with_fleet();
    let tenant = town.enrol("web");
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    let document = forewarn_control::document_of(town.rules.tenant(tenant).unwrap());
    let document: Value = serde_json::from_str(&document.render(forewarn_imds::Edition::newest())).unwrap();
    let entry = entry(town.noticed.clone());
    let pushed: Value = serde_json::from_str(&pushes(&entry, &site())[0].cloud_event()).unwrap();
    let (pushed, shown) = (&pushed["data"]["resourceInfo"]["properties"], &document["Events"][0]);
    assert_eq!(pushed.to_string(), shown.to_string());
}

#[test]
fn a_started_event_has_no_time_and_whole_ids_are_taken_as_they_are() {
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/solo";
    let notice =
        Notice { status: NoticeStatus::Completed, not_before: None, resource: id.to_owned(), ..freeze() };
    let push: Value = serde_json::from_str(&pushes(&entry(vec![notice]), &site())[0].cloud_event()).unwrap();
    let properties = &push["data"]["resourceInfo"]["properties"];
    assert_eq!((&properties["NotBefore"], &properties["EventStatus"]), (&"".into(), &"Completed".into()));
    assert_eq!(push["subject"], id);
}

/// promise: C6
#[test]
fn a_push_of_an_event_that_failed_says_for_which_machine_and_why() {
    let failures = vec![FailureView { machine: "web_1".to_owned(), reason: "no such domain".to_owned() }];
    let notice = Notice { status: NoticeStatus::Completed, not_before: None, failures, ..freeze() };
    let push = &pushes(&entry(vec![notice]), &site())[0];
    let cloud: Value = serde_json::from_str(&push.cloud_event()).unwrap();
    let grid: Value = serde_json::from_str(&push.event_grid()).unwrap();
    for data in [&cloud["data"], &grid[0]["data"]] {
        let failures = json!({ "failures": [{ "machine": "web_1", "reason": "no such domain" }] });
        assert_eq!(data["forewarn"], failures);
    }
    // Where nothing has failed, the data is that of the cloud, member by member.
    let well: Value =
        serde_json::from_str(&pushes(&entry(vec![freeze()]), &site())[0].cloud_event()).unwrap();
    assert_eq!(well["data"].get("forewarn"), None);
}

/// Whoever is told twice can tell: the id is that of the entry, the event and where it stands, whatever else has changed.
/// promise: W2
#[test]
fn an_id_stays_and_is_no_others() {
    let started = Notice { status: NoticeStatus::Started, not_before: None, ..freeze() };
    let other = Notice { event: "38512AF7-C957-4500-9BC4-842D6FB531E4".to_owned(), ..freeze() };
    let one = entry(vec![freeze(), started, other]);
    let ids = |entry: &AuditEntry, site: &Site| -> Vec<String> {
        pushes(entry, site).into_iter().map(|push| push.id).collect()
    };
    let all = ids(&one, &site());
    assert_eq!(all, ids(&one, &Site::default()));
    let next = Chain::at(&one)
        .unwrap()
        .seal(NewAuditEntry { notices: one.notices.clone(), ..NewAuditEntry::default() });
    let mut every: Vec<_> = all.into_iter().chain(ids(&next, &site())).collect();
    every.sort();
    every.dedup();
    assert_eq!(every.len(), 6);
}

#[test]
fn a_webhook_is_asked_whether_it_wants_to_be_told() {
    let at = Moment(Timestamp::from_millis(1_767_225_600_000));
    let asked = validation("c0de", at, &site());
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked.as_array().map(Vec::len), Some(1));
    assert_eq!(asked[0]["eventType"], "Microsoft.EventGrid.SubscriptionValidationEvent");
    assert_eq!(asked[0]["data"]["validationCode"], "c0de");
    assert_eq!((&asked[0]["subject"], &asked[0]["eventTime"]), (&"".into(), &"2026-01-01T00:00:00Z".into()));
}

#[test]
fn a_sample_says_that_it_is_one() {
    let at = Moment(Timestamp::from_millis(0));
    let push = sample("ops", "1", at, &site());
    assert_ne!(push.id, sample("ops", "2", at, &site()).id);
    let text = push.cloud_event();
    assert!(text.contains("This is a test of the webhook ops."), "{text}");
    assert!(text.contains("/virtualMachines/forewarn-test\""), "{text}");
}

/// promise: W1
#[test]
fn an_event_is_told_from_its_announcement_to_its_end() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    town.enrol("solo");
    town.noticed.clear();
    town.run_text(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let freeze = |status: &str| {
        let of = |resource: &str| format!("{status} Freeze {resource}");
        vec![of("virtualMachines/solo solo"), of("virtualMachineScaleSets/web web_0")]
    };
    assert_eq!(told(&mut town), freeze("Scheduled"));
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    assert_eq!(told(&mut town), Vec::<String>::new(), "an approval alone is not told");
    town.run_text(r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    assert_eq!(told(&mut town), freeze("Started"));
    town.finish();
    let mut completed = told(&mut town);
    completed.sort();
    let mut expected = freeze("Completed");
    expected.sort();
    assert_eq!(completed, expected, "each when its own machines are done");
}

/// promise: W1
#[test]
fn what_is_taken_back_is_canceled_and_what_makes_no_event_is_not_told() {
    let mut town = TestCluster::with_fleet();
    town.enrol("solo");
    town.noticed.clear();
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    town.run_text(r#"{"command":"stop","machine":"web_0"}"#);
    town.finish();
    assert_eq!(told(&mut town), Vec::<String>::new(), "web is not enrolled");
    town.run_text(r#"{"command":"restart","machine":"solo"}"#);
    town.run_text(r#"{"command":"delete","machine":"solo"}"#);
    let expected = [
        "Scheduled Reboot virtualMachines/solo solo",
        "Canceled Reboot virtualMachines/solo solo",
        "Scheduled Terminate virtualMachines/solo solo",
    ];
    assert_eq!(told(&mut town), expected);
    town.run_text(r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    town.finish();
    assert_eq!(
        told(&mut town),
        ["Started Terminate virtualMachines/solo solo", "Completed Terminate virtualMachines/solo solo"]
    );
    assert!(town.rules.tenants().all(|(_, tenant)| tenant.name.as_str() != "solo"), "it is gone");
}

/// promise: W1
#[test]
fn what_starts_as_soon_as_it_is_announced_was_never_scheduled() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    town.noticed.clear();
    town.run_text(r#"{"command":"fail_host","host":"h2"}"#);
    assert_eq!(told(&mut town), ["Started Reboot virtualMachineScaleSets/web web_1"]);
    town.finish();
    told(&mut town);
    town.run_text(r#"{"command":"change_policy","tenant":"web","policy":{"restart":"automatic"}}"#);
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    assert_eq!(told(&mut town), ["Started Reboot virtualMachineScaleSets/web web_0"]);
}

/// promise: W1
#[test]
fn what_is_known_under_another_id_is_told_under_that() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    town.enrol("solo");
    let plan = |town: &TestCluster, command: &str| {
        let command: forewarn_control::NamedCommand = serde_json::from_str(command).unwrap();
        let forewarn_control::Resolved::Rules(command) = command.resolve(&town.rules).unwrap() else {
            panic!("not a command of the rules");
        };
        town.rules.decide(town.now, &command).unwrap()
    };
    for (command, id) in [
        (r#"{"command":"restart","machine":"solo"}"#, "/Machine(MachineId(0))"),
        (r#"{"command":"restart","machine":"web_0"}"#, "/ScaleSet(ScaleSetId(0))"),
    ] {
        let beside = NoticeContext { id_of: &|owner| Some(format!("/{owner:?}")), ..NoticeContext::NOTHING };
        let told = notices(&town.rules, &plan(&town, command)[0], beside);
        assert_eq!(told[0].resource, id);
    }
}

/// What has become of an event: what was told of it, whether a document showed it as started, and whether one still has it.
#[derive(Default)]
struct Life {
    told: Vec<NoticeStatus>,
    was_started: bool,
    is_open: bool,
}

/// Every event of a history: what is told, beside what documents have shown.
fn lives(layout: &Layout, history: &[RandomOperation]) -> BTreeMap<String, Life> {
    let mut world = build(layout);
    history.iter().for_each(|happening| world.happen(happening));
    let mut cluster = Cluster::new(Seed([7; 16]));
    let mut lives = BTreeMap::<String, Life>::new();
    for (now, change) in &world.journal {
        for notice in notices(&cluster, change, NoticeContext::NOTHING) {
            lives.entry(notice.event).or_default().told.push(notice.status);
        }
        cluster.evolve(*now, change);
        lives.values_mut().for_each(|life| life.is_open = false);
        for event in cluster.tenants().flat_map(|(_, tenant)| tenant.events()) {
            let life = lives.entry(event.id().to_string()).or_default();
            life.is_open = true;
            life.was_started |= !event.is_scheduled();
        }
    }
    lives
}

proptest! {
    /// promise: W1
    #[test]
    fn every_event_is_told_once_when_it_appears_starts_and_ends(layout in layouts(), history in random_operations()) {
        use NoticeStatus::{Canceled, Completed, Scheduled, Started};
        for (event, Life { told, was_started, is_open }) in lives(&layout, &history) {
            let expected: &[&[NoticeStatus]] = match (was_started, is_open) {
                (false, true) => &[&[Scheduled]],
                (true, true) => &[&[Scheduled, Started]],
                (true, false) => &[&[Scheduled, Started, Completed]],
                // What starts when there is nothing left to do is never shown as started.
                (false, false) => &[&[Scheduled, Canceled], &[Scheduled, Started, Completed]],
            };
            prop_assert!(expected.contains(&told.as_slice()), "{event}: {told:?}");
        }
    }
}
