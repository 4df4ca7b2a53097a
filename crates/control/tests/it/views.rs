//! What an operator is shown.

use std::time::Duration;

use forewarn_control::*;
use forewarn_lifecycle::*;
use forewarn_types::{Moment, Span};

use forewarn_testkit::TestCluster;

const SOLO: MachineId = MachineId(0);

/// The only event of a tenant.
fn event(town: &TestCluster, tenant: TenantId) -> EventView {
    let events = town.rules.tenant(tenant).unwrap().events();
    assert_eq!(events.len(), 1);
    event_view(&town.rules, tenant, &events[0], &|_| true)
}

#[test]
fn a_machine_is_shown_with_all_that_is_known_of_it() {
    let town = TestCluster::with_fleet();
    let view = machine_view(&town.rules, SOLO, town.details.get(&SOLO).unwrap()).unwrap();
    let json = serde_json::to_string(&view).unwrap();
    let expected = concat!(
        r#"{"name":"solo","tenant":"solo","host":"h1","update_domain":0,"fault_domain":0,"power":"running","#,
        r#""boots":1,"disk":1,"spot":null,"terminate":"5m","os_image":false,"model":0,"#,
        r#""addresses":["10.0.0.4"],"tags":{},"events":[]}"#,
    );
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<MachineView>(&json).unwrap(), view);
    assert_eq!(machine_view(&town.rules, MachineId(99), &MachineDetails::default()), None);
}

#[test]
fn tenants_and_hosts_are_shown_with_their_machines() {
    let mut town = TestCluster::with_fleet();
    let web = town.enrol("web");
    let view = tenant_view(&town.rules, web).unwrap();
    assert_eq!((view.name.as_str(), view.kind.as_str(), view.enrolled), ("web", "scale set", true));
    assert_eq!(view.machines, ["web_0", "web_1"]);
    let solo = tenant_view(&town.rules, TenantId(0)).unwrap();
    assert_eq!((solo.kind.as_str(), solo.enrolled, solo.incarnation), ("vm", false, 1));
    let host = host_view(&town.rules, HostId(1), None).unwrap();
    assert_eq!((host.zone, host.health.as_str(), host.work), (Some(2), "healthy", None));
    assert_eq!(host.machines, ["web/web_1"]);
}

#[test]
fn an_event_is_shown_from_its_announcement_to_its_start() {
    let mut town = TestCluster::with_fleet();
    let web = town.enrol("web");
    town.run_text(r#"{"command":"update_hosts","hosts":["h1","h2"]}"#);
    let view = event(&town, web);
    assert_eq!((view.kind.as_str(), view.status.as_str(), view.approved), ("Freeze", "Scheduled", false));
    assert_eq!((view.tenant.as_str(), view.resources.as_slice()), ("web", &["web_0".to_owned()][..]));
    assert_eq!((view.cause.as_str(), view.by), ("update of h1", None));
    assert_eq!(view.progress, "waits for approval or for the end of the notice");
    assert_eq!(view.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");
    let rollouts: Vec<_> = town.rules.rollouts().map(|(id, _)| id).collect();
    let rollout = rollout_view(&town.rules, town.now, rollouts[0]).unwrap();
    assert_eq!((rollout.work.as_str(), rollout.waiting.as_slice()), ("update", &["h2".to_owned()][..]));
    let host = host_view(&town.rules, HostId(0), None).unwrap().work.unwrap();
    assert_eq!(host, "update of h1, waits for approval or for the end of the notice");
    assert_eq!(host_view(&town.rules, HostId(1), None).unwrap().work.as_deref(), Some("waits for its turn"));

    town.run_text(r#"{"command":"brake_on"}"#);
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    let held = event(&town, web);
    assert_eq!((held.approved, held.by.as_deref()), (true, Some("its owner")));
    assert_eq!(held.progress, "held by the brake");

    town.run_text(r#"{"command":"brake_off"}"#);
    town.submit(&Command::Tick);
    let started = event(&town, web);
    assert_eq!((started.status.as_str(), started.not_before), ("Started", None));
    assert_eq!((started.approved, started.by.as_deref()), (true, Some("approval")));
    assert!(started.progress.starts_with("under way: "), "{}", started.progress);
    let machine = machine_view(&town.rules, MachineId(1), &MachineDetails::default()).unwrap();
    assert_eq!(machine.events, [started.id]);
}

#[test]
fn a_clock_is_shown_with_what_comes_next() {
    let mut town = TestCluster::with_fleet();
    let shown = |town: &TestCluster| {
        let next = town.rules.next_deadline().map(|deadline| deadline.wait(town.now));
        clock_view(town.now, "virtual", 0, next)
    };
    assert_eq!(shown(&town).next_in, None);
    town.enrol("solo");
    town.run_text(r#"{"command":"restart","machine":"solo"}"#);
    let view = shown(&town);
    assert_eq!(view.next_in, Some(Span(Duration::from_secs(900))));
    assert_eq!(view.now, Moment(town.now.wall));
    let json = r#"{"now":"2026-01-01T00:00:00Z","kind":"virtual","speed":0,"next_in":"15m"}"#;
    assert_eq!(serde_json::to_string(&view).unwrap(), json);
}

/// promise: C3
#[test]
fn an_outcome_says_what_was_announced_and_what_ran_at_once() {
    let mut town = TestCluster::with_fleet();
    town.enrol("web");
    let told = town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    assert_eq!((told.events.len(), told.unnotified.as_slice(), told.work.len()), (1, &[][..], 1));
    assert_eq!(told.events[0].kind, "Reboot");
    let at_once = town.run_text(r#"{"command":"restart","machine":"solo"}"#);
    assert_eq!((at_once.events.len(), at_once.unnotified.as_slice()), (0, &["solo".to_owned()][..]));
    // Nobody is told of a stop, and nobody is owed it.
    let stop = town.run_text(r#"{"command":"stop","machine":"web_1"}"#);
    assert_eq!((stop.events.len(), stop.unnotified.len(), stop.work.len()), (0, 0, 1));
    let both = town.run_text(r#"{"command":"update_hosts","hosts":["h2"]}"#);
    assert_eq!((both.rollouts.len(), both.now), (1, Moment(town.now.wall)));
    let again = town.run_text(r#"{"command":"brake_off"}"#);
    assert_eq!(again.changes, 0);
}
