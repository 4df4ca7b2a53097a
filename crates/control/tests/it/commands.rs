//! Commands by name: how they are written, and what they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::*;
use forewarn_lifecycle::*;
use forewarn_types::Span;

use forewarn_testkit::TestCluster;

/// One of each, as an operator would write it.
const EVERY: [&str; 56] = [
    r#"{"command":"admit_host","name":"h3","zone":1}"#,
    r#"{"command":"remove_host","host":"h1"}"#,
    r#"{"command":"forget_host","host":"h1"}"#,
    r#"{"command":"forget","machine":"web_0"}"#,
    r#"{"command":"move","machine":"web_0","host":"h2","force":true}"#,
    r#"{"command":"admit_vm","name":"v","host":"h1","update_domain":0,"fault_domain":0}"#,
    r#"{"command":"admit_availability_set","name":"db"}"#,
    r#"{"command":"admit_cloud_service","name":"shop"}"#,
    r#"{"command":"admit_machine","tenant":"solo","machine":{"name":"m","host":"h1","update_domain":1,"fault_domain":2,"spot":"delete"}}"#,
    r#"{"command":"admit_scale_set","name":"big","orchestration":"flexible","upgrade":"automatic","spot":"deallocate","os_image":true}"#,
    r#"{"command":"admit_instance","scale_set":"web","instance":{"id":7,"host":"h1","update_domain":0,"fault_domain":0}}"#,
    r#"{"command":"remove_tenant","tenant":"solo"}"#,
    r#"{"command":"remove_scale_set","scale_set":"web"}"#,
    r#"{"command":"change_windows","tenant":"solo","windows":["sat,sun 22:00-04:00 Europe/Berlin","03:00-05:00 +01:00"]}"#,
    r#"{"command":"change_policy","tenant":"solo","policy":{"restart":"automatic","redeploy":"asked","all_down":"asked"}}"#,
    r#"{"command":"change_model","scale_set":"web","terminate":"7m30s","os_image":true}"#,
    r#"{"command":"revise_model","scale_set":"web"}"#,
    r#"{"command":"change_upgrade_policy","scale_set":"web","upgrade":{"rolling":{"batch_percent":25,"pause":"1h"}}}"#,
    r#"{"command":"change_profile","machine":"solo","terminate":null,"os_image":false}"#,
    r#"{"command":"change_capacity","host":"h1","cpus":64,"memory":"256GiB"}"#,
    r#"{"command":"resize","machine":"solo","cpus":4,"memory":"1536MiB"}"#,
    r#"{"command":"resize_instances","scale_set":"web","memory":"8GiB"}"#,
    r#"{"command":"upgrade_instance","machine":"web_0"}"#,
    r#"{"command":"describe","machine":"solo","addresses":["10.0.0.4","fd00::4"],"tags":{"role":"db"}}"#,
    r#"{"command":"change_site","location":"north","subscription":"s","resource_group":"g"}"#,
    r#"{"command":"restart","machine":"web/web_0"}"#,
    r#"{"command":"redeploy","machine":"web_0"}"#,
    r#"{"command":"delete","machine":"web_0"}"#,
    r#"{"command":"reimage","machine":"web_0"}"#,
    r#"{"command":"evict","machine":"web_0"}"#,
    r#"{"command":"stop","machine":"web_0"}"#,
    r#"{"command":"start","machine":"web_0"}"#,
    r#"{"command":"deallocate","machine":"web_0"}"#,
    r#"{"command":"update_hosts","hosts":["h1","h2"]}"#,
    r#"{"command":"update_network","hosts":["h1"]}"#,
    r#"{"command":"migrate_hosts","hosts":["h1"]}"#,
    r#"{"command":"reboot_hosts","hosts":["h1"]}"#,
    r#"{"command":"cancel_rollout","rollout":3}"#,
    r#"{"command":"degrade_host","host":"h1","fails_in":"2d"}"#,
    r#"{"command":"fail_host","host":"h1","fenced":true}"#,
    r#"{"command":"recover_host","host":"h1"}"#,
    r#"{"command":"complete_host","host":"h1","failed":"no kernel"}"#,
    r#"{"command":"retry_host","host":"h1"}"#,
    r#"{"command":"give_up_host","host":"h1"}"#,
    r#"{"command":"clear_host","host":"h1"}"#,
    r#"{"command":"enter_maintenance","host":"h1","move":"stop","work":"kernel 6.12.9","kind":"reboot","duration":"45s"}"#,
    r#"{"command":"exit_maintenance","host":"h1","return":true}"#,
    r#"{"command":"retry","event":"28512AF7-C957-4500-9BC4-842D6FB531E4"}"#,
    r#"{"command":"give_up","event":"28512AF7-C957-4500-9BC4-842D6FB531E4"}"#,
    r#"{"command":"approve","tenant":"solo","events":"all"}"#,
    r#"{"command":"cancel","event":"28512AF7-C957-4500-9BC4-842D6FB531E4"}"#,
    r#"{"command":"force_start","event":"28512AF7-C957-4500-9BC4-842D6FB531E4"}"#,
    r#"{"command":"brake_on"}"#,
    r#"{"command":"brake_off"}"#,
    r#"{"command":"change_settings","unenrolled":"waits","user_operations_max":2,"failure":"redeploy","enrolment":"always"}"#,
    r#"{"command":"jam","machine":"web_0"}"#,
];

fn read(json: &str) -> NamedCommand {
    serde_json::from_str(json).unwrap_or_else(|problem| panic!("{json}: {problem}"))
}

/// promise: C3
#[test]
fn every_command_is_written_as_it_is_read() {
    let mut kinds = BTreeSet::new();
    for json in EVERY {
        let command = read(json);
        assert_eq!(serde_json::to_string(&command).unwrap(), json);
        kinds.insert(json.split('"').nth(3).unwrap());
    }
    assert_eq!(kinds.len(), EVERY.len(), "one of each");
}

/// promise: C3
#[test]
fn a_key_that_means_nothing_is_refused() {
    for json in EVERY {
        let with = format!(r#"{{"surprise":1,{}"#, &json[1..]);
        let problem = serde_json::from_str::<NamedCommand>(&with).expect_err(&with);
        assert!(problem.to_string().contains("surprise"), "{with}: {problem}");
    }
    for inner in [
        r#"{"command":"admit_machine","tenant":"t","machine":{"name":"m","host":"h","surprise":1}}"#,
        r#"{"command":"change_policy","tenant":"t","policy":{"surprise":"asked"}}"#,
        r#"{"command":"change_windows","tenant":"t","windows":[]}"#,
        r#"{"command":"change_windows","tenant":"t"}"#,
        r#"{"command":"fly"}"#,
        r#"{"name":"h1"}"#,
        r#"{"command":"change_settings","unenrolled":"sometimes"}"#,
        r#"{"command":"change_settings","enrolment":"never"}"#,
        r#"{"command":"degrade_host","host":"h1","fails_in":7}"#,
    ] {
        assert!(serde_json::from_str::<NamedCommand>(inner).is_err(), "{inner}");
    }
}

#[test]
fn what_is_not_said_has_a_usual_value() {
    let vm = VmEntry {
        windows: Vec::new(),
        name: "v".to_owned(),
        host: "h1".to_owned(),
        update_domain: 0,
        fault_domain: 0,
        cpus: None,
        memory: None,
        spot: None,
        terminate: None,
        os_image: false,
        policy: PolicyEntry::default(),
        addresses: Vec::new(),
        tags: BTreeMap::new(),
    };
    assert_eq!(read(r#"{"command":"admit_vm","name":"v","host":"h1"}"#), NamedCommand::AdmitVm(vm));
    let settings = NamedCommand::ChangeSettings(SettingsChange::default());
    assert_eq!(read(r#"{"command":"change_settings"}"#), settings);
    let policy: PolicyEntry = serde_json::from_str("{}").unwrap();
    assert_eq!(Policy::from(policy), Policy::default());
}

/// promise: C3
#[test]
fn an_order_to_the_clock_is_written_as_it_is_read() {
    for json in [
        r#"{"clock":"freeze"}"#,
        r#"{"clock":"scale","speed":60}"#,
        r#"{"clock":"advance","by":"9m50s"}"#,
        r#"{"clock":"next"}"#,
        r#"{"clock":"until","at":"2026-01-01T00:15:00Z"}"#,
        r#"{"clock":"next","within":"15m"}"#,
    ] {
        let order: ClockChange = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&order).unwrap(), json);
        let with = format!(r#"{{"surprise":1,{}"#, &json[1..]);
        assert!(serde_json::from_str::<ClockChange>(&with).is_err(), "{with}");
    }
}

#[test]
fn names_come_to_numbers() {
    let town = TestCluster::with_fleet();
    let rules = |json: &str| {
        let resolved = read(json).resolve(&town.rules).unwrap();
        let Resolved::Rules(command) = resolved else { panic!("{json}: {resolved:?}") };
        command
    };
    let (solo, web_1) = (MachineId(0), MachineId(2));
    assert_eq!(rules(r#"{"command":"restart","machine":"solo"}"#), Command::Restart(solo));
    assert_eq!(rules(r#"{"command":"evict","machine":"web/web_1"}"#), Command::Evict(web_1));
    let stop = Command::ChangePower { machine: solo, change: PowerChange::Stop };
    assert_eq!(rules(r#"{"command":"stop","machine":"solo"}"#), stop);
    let rollout = Command::Rollout {
        work: HostTask::from(HostWork::Restart).with_step(None),
        hosts: vec![HostId(1), HostId(0)],
        terms: RolloutTerms::default(),
    };
    assert_eq!(rules(r#"{"command":"reboot_hosts","hosts":["h2","h1"]}"#), rollout);
    let degrade = Command::DegradeHost { host: HostId(0), fails_in: Some(Duration::from_secs(7_200)) };
    assert_eq!(rules(r#"{"command":"degrade_host","host":"h1","fails_in":"2h"}"#), degrade);
    assert_eq!(rules(r#"{"command":"cancel_rollout","rollout":9}"#), Command::CancelRollout(RolloutId(9)));
    assert_eq!(rules(r#"{"command":"brake_on"}"#), Command::Brake(Brake::On));
    let jam = read(r#"{"command":"jam","machine":"web_1"}"#).resolve(&town.rules);
    assert_eq!(jam, Ok(Resolved::Jam(web_1)));
}

#[test]
fn the_policy_of_an_instance_is_that_of_its_scale_set() {
    let town = TestCluster::with_fleet();
    let policy = |tenant: &str| {
        let command =
            NamedCommand::ChangePolicy { tenant: tenant.to_owned(), policy: PolicyEntry::default() };
        command.resolve(&town.rules).unwrap()
    };
    let usual = Policy::default();
    let of_scale_set = Command::ChangeScaleSetPolicy { scale_set: ScaleSetId(0), policy: usual };
    assert_eq!(policy("web"), Resolved::Rules(of_scale_set));
    let of_tenant = Command::ChangePolicy { tenant: TenantId(0), policy: usual };
    assert_eq!(policy("solo"), Resolved::Rules(of_tenant));
}

#[test]
fn settings_that_are_not_said_stay() {
    let mut town = TestCluster::empty();
    town.run_text(r#"{"command":"change_settings","user_operations_max":2}"#);
    town.run_text(r#"{"command":"change_settings","unenrolled":"waits"}"#);
    let settings = town.rules.settings();
    assert_eq!((settings.user_operations_max, settings.unenrolled), (Some(2), Unenrolled::WaitAnyway));
    town.run_text(
        r#"{"command":"change_settings","user_operations_max":0,"unenrolled":"runs","failure":"redeploy"}"#,
    );
    let settings = town.rules.settings();
    assert_eq!((settings.user_operations_max, settings.unenrolled), (None, Unenrolled::RunAtOnce));
    assert_eq!(settings.failure, FailureKind::Redeploy);
}

#[test]
fn an_owner_approves_what_is_named_or_all_that_is_seen() {
    let mut town = TestCluster::with_fleet();
    let tenant = town.enrol("web");
    for machine in ["web_0", "web_1"] {
        town.perform(&NamedCommand::Restart { machine: machine.to_owned() });
    }
    let ids: Vec<_> = town.rules.tenant(tenant).unwrap().events().iter().map(Event::id).collect();
    let approve = |events: &[EventId]| {
        let events = EventSelection::Ids(events.iter().map(ToString::to_string).collect());
        NamedCommand::Approve { tenant: "web".to_owned(), events }.resolve(&town.rules).unwrap()
    };
    let expected = |events: &[EventId]| {
        Resolved::Rules(Command::Approve { tenant, events: events.to_vec(), by: Approver::Owner })
    };
    let all = NamedCommand::Approve { tenant: "web".to_owned(), events: EventSelection::Every(AllWord::All) };
    assert_eq!(all.resolve(&town.rules), Ok(expected(&ids)));
    assert_eq!(approve(&ids[1..]), expected(&ids[1..]));
}

/// promise: C3
#[test]
fn what_cannot_be_found_is_told_with_a_hint() {
    let mut town = TestCluster::with_fleet();
    town.run_text(r#"{"command":"admit_availability_set","name":"a"}"#);
    town.run_text(r#"{"command":"admit_availability_set","name":"b"}"#);
    for tenant in ["a", "b"] {
        town.run_text(&format!(
            r#"{{"command":"admit_machine","tenant":"{tenant}","machine":{{"name":"vm","host":"h1"}}}}"#
        ));
    }
    let long = "x".repeat(200);
    let event = "28512AF7-C957-4500-9BC4-842D6FB531E4";
    for (command, words) in [
        (r#"{"command":"restart","machine":"web-0"}"#, "no such machine: web-0\n  hint: did you mean web_0?"),
        (r#"{"command":"restart","machine":"nobody"}"#, "no such machine: nobody"),
        (r#"{"command":"restart","machine":"wbe/web_0"}"#, "no such tenant: wbe\n  hint: did you mean web?"),
        (
            r#"{"command":"restart","machine":"vm"}"#,
            "several machines have this name: vm\n  hint: write a/vm or b/vm",
        ),
        (r#"{"command":"update_hosts","hosts":["h1","h9"]}"#, "no such host: h9\n  hint: did you mean h1?"),
        (r#"{"command":"remove_scale_set","scale_set":"elsewhere"}"#, "no such scale set: elsewhere"),
        (r#"{"command":"cancel","event":"E1"}"#, "no such event: E1"),
        (&format!(r#"{{"command":"force_start","event":"{event}"}}"#), &format!("no such event: {event}")),
        (
            r#"{"command":"approve","tenant":"web","events":["E1"]}"#,
            "not an event id: \"E1\"\n  hint: `forewarn event ls` shows them",
        ),
        (r#"{"command":"restart","machine":"/"}"#, "no such machine: /"),
        (r#"{"command":"restart","machine":"web/"}"#, "no such machine: web/"),
        (r#"{"command":"admit_host","name":".."}"#, "invalid name \"..\": a name must not be '.' or '..'"),
        (
            r#"{"command":"admit_vm","name":"v","host":"h1","tags":{"a":"\n"}}"#,
            "a control character in the value of a tag: \"\\n\"",
        ),
        (
            r#"{"command":"change_site","location":"a\u001b[2J"}"#,
            "a control character in the location: \"a\\u{1b}[2J\"",
        ),
        (r#"{"command":"admit_host","name":"h/1"}"#, "invalid name \"h/1\": a name has only letters"),
        (
            &format!(r#"{{"command":"admit_host","name":"{long}"}}"#),
            &format!("invalid name \"{}\"", &long[..100]),
        ),
        (
            r#"{"command":"change_model","scale_set":"web","terminate":"4m"}"#,
            "notice of deletion must be 5 to 15 minutes, not 4m",
        ),
        (
            r#"{"command":"change_upgrade_policy","scale_set":"web","upgrade":{"rolling":{"batch_percent":0}}}"#,
            "batch size must be 1 to 100 % of a scale set, not 0 %",
        ),
        (
            r#"{"command":"admit_scale_set","name":"big","upgrade":{"rolling":{"batch_percent":101}}}"#,
            "batch size must be 1 to 100 % of a scale set, not 101 %",
        ),
        (
            r#"{"command":"admit_availability_set","name":"db","machine":[{"name":"m","host":"h1"}]}"#,
            "db must be admitted without machines",
        ),
        (
            r#"{"command":"admit_scale_set","name":"big","instance":[{"host":"h1"}]}"#,
            "big must be admitted without machines",
        ),
    ] {
        let bad = read(command).resolve(&town.rules).expect_err(command).to_string();
        assert!(bad.starts_with(words), "{command}: {bad}");
    }
}

#[test]
fn a_machine_has_so_many_addresses_and_tags_and_no_more() {
    let town = TestCluster::with_fleet();
    let resolve = |addresses: usize, tags: usize, bytes: usize| {
        let addresses = Some((0..addresses).map(|n| [10, 0, 0, u8::try_from(n).unwrap()].into()).collect());
        let tags = Some((0..tags).map(|n| (n.to_string(), "x".repeat(bytes))).collect());
        NamedCommand::Describe { machine: "solo".to_owned(), addresses, tags }.resolve(&town.rules)
    };
    assert!(resolve(ADDRESSES_MAX, TAGS_MAX, TAG_CHARS_MAX).is_ok());
    let message = |bad: Result<Resolved, CommandError>| bad.unwrap_err().to_string();
    assert_eq!(message(resolve(ADDRESSES_MAX + 1, 0, 0)), "too many addresses for solo: at most 16");
    assert_eq!(message(resolve(0, TAGS_MAX + 1, 0)), "too many tags for solo: at most 50");
    assert_eq!(
        message(resolve(0, 1, TAG_CHARS_MAX + 1)),
        "too many characters in a tag for solo: at most 512"
    );
}

/// promise: C3
#[test]
fn what_is_found_in_views_is_what_is_found_in_the_cluster() {
    let town = TestCluster::with_fleet();
    let details = MachineDetails::default();
    let ids: Vec<_> = town.rules.machines().map(|(id, _)| id).collect();
    let machines: Vec<_> = ids.iter().map(|id| machine_view(&town.rules, *id, &details).unwrap()).collect();
    for (id, view) in ids.iter().zip(&machines) {
        for name in [view.name.clone(), format!("{}/{}", view.tenant, view.name)] {
            assert_eq!(pick_machine(&machines, &name), Ok(view));
            assert_eq!(find_machine(&town.rules, &name), Ok(*id));
        }
    }
    for name in ["web-0", "web/web_9", "nobody"] {
        assert_eq!(
            pick_machine(&machines, name).unwrap_err(),
            find_machine(&town.rules, name).unwrap_err(),
            "{name}"
        );
    }
    let twins = [machines[1].clone(), MachineView { tenant: "east".to_owned(), ..machines[1].clone() }];
    let several = pick_machine(&twins, "web_0").unwrap_err().to_string();
    assert_eq!(several, "several machines have this name: web_0\n  hint: write web/web_0 or east/web_0");
    // An instance of the second placement group is one of the scale set.
    let second = [MachineView { tenant: "web:2".to_owned(), ..machines[1].clone() }];
    for name in ["web/web_0", "web:2/web_0"] {
        assert_eq!(pick_machine(&second, name), Ok(&second[0]));
    }
    assert!(pick_machine(&second, "web:3/web_0").is_err());
    let tenants: Vec<_> = town.rules.tenants().filter_map(|(id, _)| tenant_view(&town.rules, id)).collect();
    assert_eq!(pick_tenant(&tenants, "web").unwrap().name, "web");
    assert_eq!(pick_tenant(&tenants, "wbe").unwrap_err(), find_tenant(&town.rules, "wbe").unwrap_err());
}

#[test]
fn a_notice_is_of_five_to_fifteen_minutes() {
    let town = TestCluster::with_fleet();
    for (seconds, fits) in [(299, false), (300, true), (900, true), (901, false)] {
        let terminate = Some(Span(Duration::from_secs(seconds)));
        let change = NamedCommand::ChangeProfile { machine: "solo".to_owned(), terminate, os_image: false };
        assert_eq!(change.resolve(&town.rules).is_ok(), fits, "{seconds}");
    }
}

/// promise: C3
#[test]
fn a_scale_set_stands_for_all_its_placement_groups() {
    let mut town = TestCluster::with_fleet();
    for _ in 0..100 {
        town.run_text(r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h1"}}"#);
    }
    let last = find_machine(&town.rules, "web_101").unwrap();
    let tenant = town.rules.machine(last).unwrap().tenant;
    assert_eq!(town.rules.tenant(tenant).unwrap().name.as_str(), "web:2");
    for name in ["web/web_101", "web:2/web_101"] {
        assert_eq!(find_machine(&town.rules, name), Ok(last), "{name}");
    }
    assert!(find_machine(&town.rules, "web:2/web_0").is_err());
}
