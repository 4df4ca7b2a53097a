//! The start of work in a reply: as the journal has it, and not as anybody would guess.

use forewarn_control::request::{ClusterRequest, CommandBatch, Reply, RequestContext};
use forewarn_control::*;
use forewarn_lifecycle::{Change, Command, MaintenanceId, TenantId};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::streams::{Failed, Streams};
use forewarn_testkit::TestCluster;

const CLUSTER: ClusterId = ClusterId::DEFAULT;
const HOSTS: u8 = 3;
const MACHINES: u8 = 4;

/// Three hosts, and a machine of its own tenant on the first two by turns. Numbers choose the rest.
fn fleet(waits: bool, enrolled: u8, automatic: u8) -> Streams {
    let mut streams = Streams::new();
    for host in 0..HOSTS {
        ask(&mut streams, &json!({ "command": "admit_host", "name": format!("h{host}") })).unwrap();
    }
    for machine in 0..MACHINES {
        let restart = if automatic >> machine & 1 == 1 { "automatic" } else { "asked" };
        let mut vm = json!({
            "command": "admit_vm", "name": format!("v{machine}"), "host": format!("h{}", machine % 2),
            "policy": { "restart": restart },
        });
        if machine < 2 {
            vm["terminate"] = "5m".into();
        }
        ask(&mut streams, &vm).unwrap();
        if enrolled >> machine & 1 == 1 {
            let tenant = streams.cluster(CLUSTER).rules().tenant_named(&format!("v{machine}")).unwrap();
            streams.ask_cluster(CLUSTER, &ClusterRequest::Rules(Command::Enrol(tenant))).unwrap();
        }
    }
    let unenrolled = if waits { "waits" } else { "runs" };
    ask(&mut streams, &json!({ "command": "change_settings", "unenrolled": unenrolled })).unwrap();
    streams
}

fn ask(streams: &mut Streams, command: &Value) -> Result<Outcome, ControlError> {
    let commands = vec![serde_json::from_value(command.clone()).unwrap()];
    let batch = CommandBatch { commands, context: RequestContext::default() };
    match streams.ask_cluster(CLUSTER, &ClusterRequest::Commands(batch)) {
        Ok(Reply::Outcome(outcome)) => Ok(outcome),
        Ok(reply) => panic!("{reply:?}"),
        Err(Failed::Refused(error)) => Err(error),
        Err(Failed::Crashed) => panic!("there is no crash here"),
    }
}

fn command((what, which): (u8, u8)) -> Value {
    let (machine, host) = (format!("v{}", which % MACHINES), format!("h{}", which % HOSTS));
    match what % 12 {
        0..=2 => json!({ "command": "restart", "machine": machine }),
        3 => json!({ "command": "redeploy", "machine": machine }),
        4 => json!({ "command": "delete", "machine": machine }),
        5 => json!({ "command": "stop", "machine": machine }),
        6 => json!({ "command": "update_hosts", "hosts": [host] }),
        7 => json!({ "command": "degrade_host", "host": host }),
        8 => json!({ "command": "approve", "tenant": machine, "events": "all" }),
        9 => json!({ "command": "brake_on" }),
        10 => json!({ "command": "brake_off" }),
        _ => json!({ "command": "fail_host", "host": host }),
    }
}

/// The journal has the start of that work.
fn has_started(streams: &Streams, work: u64) -> bool {
    streams.records.iter().any(|record| match &record.entry {
        Entry::Cluster(_, ClusterEntry::Rules(Change::Started { maintenance, .. })) => maintenance.0 == work,
        Entry::Cluster(..) | Entry::Shared(_) => false,
    })
}

/// Does all that is due.
fn settle(streams: &mut Streams) {
    // The silence of a tenant, after a day, is due as well, but is not decided here.
    loop {
        let before = streams.records.len();
        streams.ask_cluster(CLUSTER, &ClusterRequest::Rules(Command::Tick)).unwrap();
        if streams.records.len() == before {
            return;
        }
    }
}

proptest! {
    /// promise: C3
    #[test]
    fn a_reply_says_started_if_and_only_if_the_journal_has_the_start(
        (waits, enrolled, automatic) in any::<(bool, u8, u8)>(),
        commands in prop::collection::vec(any::<(u8, u8)>(), 1..12),
    ) {
        let mut streams = fleet(waits, enrolled, automatic);
        let mut waiting = Vec::new();
        for command in commands.into_iter().map(command) {
            let Ok(outcome) = ask(&mut streams, &command) else { continue };
            for work in &outcome.work {
                prop_assert!(outcome.start_of(*work).is_some(), "{command}: {outcome:?}");
            }
            for start in &outcome.starts {
                let is_started = start.state == StartState::Started;
                prop_assert_eq!(is_started, has_started(&streams, start.work), "{}: {:?}", command, start);
                let of_work = |event: &&EventView| event.work == start.work;
                if let (Some(event), true) = (outcome.events.iter().find(of_work), is_started) {
                    prop_assert_eq!(event.status.as_str(), "Started", "{}", command);
                }
            }
            waiting.extend(outcome.starts.into_iter().filter(|start| start.not_before.is_some()));
        }
        // Nothing that waits without an event starts before the time that the reply names.
        ask(&mut streams, &json!({ "command": "brake_off" })).unwrap();
        waiting.retain(|start| start.notice == WorkNotice::Unenrolled && !has_started(&streams, start.work));
        waiting.sort_by_key(|start| start.not_before.map(|at| at.0));
        for start in waiting {
            let end = start.not_before.unwrap().0;
            let left = end.since(streams.now.wall).saturating_sub(std::time::Duration::from_secs(1));
            streams.now = streams.now.plus(left);
            settle(&mut streams);
            if end > streams.now.wall {
                prop_assert!(!has_started(&streams, start.work), "early: {start:?}");
            }
            streams.now = streams.now.plus(std::time::Duration::from_secs(1));
            settle(&mut streams);
            let later = streams.cluster(CLUSTER).rules().maintenance(MaintenanceId(start.work));
            let waits_for_notice = later.and_then(forewarn_lifecycle::Maintenance::wait) == Some(forewarn_lifecycle::Wait::Notice);
            prop_assert!(!waits_for_notice, "late: {start:?}");
        }
    }
}

/// promise: C3
#[test]
fn work_on_unenrolled_tenants_waits_as_long_as_a_notice_if_the_setting_says_so() {
    let mut streams = fleet(true, 0, 0);
    let outcome = ask(&mut streams, &json!({ "command": "restart", "machine": "v0" })).unwrap();
    let start = outcome.start_of(outcome.work[0]).unwrap();
    assert_eq!((start.state, start.notice), (StartState::Waiting, WorkNotice::Unenrolled));
    assert_eq!(start.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");
    let waits = "waits as long as a notice, until 2026-01-01T00:15:00Z: none of its tenants is enrolled";
    assert_eq!((start.progress.as_str(), outcome.unnotified.as_slice()), (waits, &["v0".to_owned()][..]));

    let mut streams = fleet(false, 0, 0);
    let outcome = ask(&mut streams, &json!({ "command": "restart", "machine": "v0" })).unwrap();
    let start = outcome.start_of(outcome.work[0]).unwrap();
    assert_eq!((start.state, start.not_before), (StartState::Started, None));
    ask(&mut streams, &json!({ "command": "brake_on" })).unwrap();
    let outcome = ask(&mut streams, &json!({ "command": "restart", "machine": "v1" })).unwrap();
    let start = outcome.start_of(outcome.work[0]).unwrap();
    assert_eq!((start.state, start.progress.as_str()), (StartState::Held, "held by the brake"));
}

/// promise: C3
#[test]
fn an_approved_event_names_the_tenants_that_it_waits_for_to_those_who_may_see_them() {
    let mut town = TestCluster::with_fleet();
    let (solo, web) = (town.enrol("solo"), town.enrol("web"));
    town.run_text(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let outcome = town.run_text(r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    let [start] = outcome.starts.as_slice() else { panic!("{outcome:?}") };
    assert_eq!((start.state, start.unapproved.as_slice()), (StartState::Waiting, &["web".to_owned()][..]));
    let shown = |sees: &dyn Fn(TenantId) -> bool| {
        let event = &town.rules.tenant(solo).unwrap().events()[0];
        event_view(&town.rules, solo, event, sees).progress
    };
    let waits_for = |tenants: &str| {
        format!("approved, waits for the approval of {tenants}, or for the end of the notice")
    };
    assert_eq!(shown(&|_| true), waits_for("tenant web"));
    assert_eq!(shown(&|tenant| tenant == solo), waits_for("another tenant"));
    let event = &town.rules.tenant(web).unwrap().events()[0];
    let other = event_view(&town.rules, web, event, &|_| true).progress;
    assert_eq!(other, "waits for approval or for the end of the notice");
}

#[test]
fn a_deletion_without_notice_says_how_to_enable_it() {
    let mut town = TestCluster::with_fleet();
    town.run_text(r#"{"command":"admit_vm","name":"bare","host":"h1"}"#);
    town.run_text(r#"{"command":"admit_vm","name":"spot","host":"h1","spot":"delete"}"#);
    let mut remedy = |machine: &str| {
        let outcome = town.run_json(&json!({ "command": "delete", "machine": machine }));
        outcome.starts[0].remedy.clone()
    };
    let bare = remedy("bare").unwrap();
    assert!(bare.ends_with("first run: forewarn vm update bare --terminate-notification on"), "{bare}");
    let web = remedy("web_0").unwrap();
    assert!(web.ends_with("first run: forewarn scaleset update web --terminate-notification on"), "{web}");
    assert_eq!(remedy("solo"), None, "it has the notice: its tenant is not enrolled");
    assert_eq!(remedy("spot"), None, "spot machines have none");
}

#[test]
fn hosts_that_are_worked_on_are_named_and_left_out() {
    let mut streams = fleet(false, 0xff, 0);
    ask(&mut streams, &json!({ "command": "update_hosts", "hosts": ["h1", "h0"] })).unwrap();
    let all = json!({ "command": "start_rollout", "kind": "update", "hosts": "all" });
    let refused = ask(&mut streams, &all).unwrap_err().to_string();
    assert!(refused.starts_with("planned work on a host is announced or in progress: h0, h1\n"), "{refused}");
    assert!(refused.ends_with("`--except h0 --except h1`"), "{refused}");
    let mut rest = all.clone();
    rest["except"] = json!(["h0", "h1"]);
    assert_eq!(ask(&mut streams, &rest).unwrap().rollouts, [1]);
    rest["except"] = json!(["h9"]);
    assert!(ask(&mut streams, &rest).unwrap_err().to_string().contains("no such host: h9"));
}
