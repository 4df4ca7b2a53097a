//! Previews of rollouts: what they say is what happens then.

use forewarn_control::*;
use forewarn_explain::*;
use forewarn_lifecycle::*;

use forewarn_testkit::TestCluster;

/// A rollout, without the word `command`.
fn entry(json: &str) -> RolloutEntry {
    let NamedCommand::StartRollout(entry) = command(json) else { panic!("{json}") };
    entry
}

fn start(hosts: &str) -> RolloutEntry {
    entry(&format!(r#"{{"command":"start_rollout","kind":"update","hosts":{hosts}}}"#))
}

fn command(json: &str) -> NamedCommand {
    serde_json::from_str(json).unwrap()
}

/// promise: R2
#[test]
fn a_preview_is_what_happens_then() {
    let mut town = TestCluster::with_pairs();
    let start = r#"{"command":"start_rollout","kind":"update","hosts":"all","terms":{"pause_between":"10m","confirm":"first"}}"#;
    let before = town.rules.clone();
    let seen = preview(&town.rules, town.now, &entry(start)).unwrap();
    assert_eq!(town.rules, before);
    assert_eq!((seen.work.as_str(), seen.hosts, seen.longest.steps.len()), ("update", 6, 3));
    assert_eq!(forewarn_types::show_duration(seen.longest.lasts.0), "1h5m27s");
    assert_eq!(forewarn_types::show_duration(seen.shortest.lasts.0), "20m27s");
    assert_eq!((&seen.longest.stuck, &seen.notes[..]), (&None, &[][..]));
    town.run_text(start);
    for step in &seen.longest.steps {
        assert_eq!(town.rollout(0).current_hosts, step.hosts);
        assert_eq!(step.announced.0, town.now.wall);
        assert_eq!(step.tenants.len(), 1);
        assert_eq!(step.tenants[0].event.as_deref(), Some("Freeze"));
        assert_eq!(step.tenants[0].machines.len(), 2);
        town.advance(900);
        assert_eq!(step.starts.0, town.now.wall);
        town.advance(9);
        town.finish();
        assert_eq!(step.ends.0, town.now.wall);
        town.tick();
        if town.rollout(0).state == "waits-for-confirmation" {
            town.run_text(r#"{"command":"resume_rollout","rollout":0}"#);
        }
        town.advance(600);
    }
    assert_eq!(town.rollout(0).state, "finished");
}

#[test]
fn a_preview_says_what_it_cannot_know_and_what_is_refused() {
    let mut town = TestCluster::with_pairs();
    town.run_text(r#"{"command":"brake_on"}"#);
    let seen = preview(&town.rules, town.now, &start(r#"["h1"]"#)).unwrap();
    assert_eq!((seen.notes.len(), seen.longest.steps.len()), (1, 1));
    assert!(matches!(preview(&town.rules, town.now, &start(r#"["h9"]"#)), Err(PreviewError::Bad(_))));
    assert_eq!(
        preview(&town.rules, town.now, &start(r#"{"zone":9}"#)),
        Err(PreviewError::Refused(Refusal::NoHosts))
    );
    // A host that is in planned work already keeps the other update domains waiting: its notice runs out first.
    town.run_text(r#"{"command":"brake_off"}"#);
    town.run_text(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let seen = preview(&town.rules, town.now, &start(r#"["h3"]"#)).unwrap();
    let announced = seen.shortest.steps[0].announced.0.since(town.now.wall);
    assert_eq!(announced.as_secs(), 909);
    // Where something is not well for good, it does not come to an end.
    town.run_text(r#"{"command":"fail_host","host":"h1"}"#);
    town.tick();
    let windows = entry(
        r#"{"command":"start_rollout","kind":"reboot","hosts":["h3","h4"],"terms":{"windows":["sun 03:00-04:00"]}}"#,
    );
    let seen = preview(&town.rules, town.now, &windows).unwrap();
    assert!(seen.longest.steps.iter().all(|step| step.starts.to_string().contains("T03:")), "{seen:?}");
}

#[test]
fn a_preview_has_the_times_of_each_host() {
    let town = TestCluster::with_pairs();
    let update = r#"{"command":"start_rollout","kind":"reboot","hosts":["h1","h2"],"duration":"60s"}"#;
    let seen = preview(&town.rules, town.now, &entry(update)).unwrap();
    let step = &seen.longest.steps[0];
    let hosts: Vec<_> = step.host_steps.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(hosts, ["h1", "h2"]);
    for host in &step.host_steps {
        assert!(step.starts.0 <= host.begins.0 && host.begins.0 < host.ends.0, "{host:?}");
        assert!(host.returned.is_some_and(|returned| host.ends.0 <= returned.0 && returned.0 <= step.ends.0));
        assert_eq!(host.ends.0.since(host.begins.0).as_secs(), 60);
    }
    assert!(!seen.manual);
    let manual = seen.by_persons();
    assert!(manual.manual && manual.notes[0].contains("`forewarn host done`"), "{:?}", manual.notes);
    let json = serde_json::to_value(&manual).unwrap();
    assert_eq!(
        (&json["manual"], &json["longest"]["steps"][0]["host_steps"][0]["host"]),
        (&true.into(), &"h1".into())
    );
    let no_work = r#"{"command":"start_rollout","kind":"update","hosts":["h1"],"no_work":true}"#;
    let seen = preview(&town.rules, town.now, &entry(no_work)).unwrap();
    assert_eq!(seen.longest.steps[0].host_steps, []);
    assert!(!seen.by_persons().manual);
}

#[test]
fn a_preview_respects_windows_of_tenants_and_refuses_windows_that_never_meet() {
    let mut town = TestCluster::with_pairs();
    town.run_text(r#"{"command":"change_windows","tenant":"web","windows":["03:00-04:00"]}"#);
    let seen = preview(&town.rules, town.now, &start(r#"["h1"]"#)).unwrap();
    let step = &seen.longest.steps[0];
    assert!(step.starts.to_string().contains("T03:00:00"), "{step:?}");
    assert_eq!(step.tenants[0].windows, ["03:00-04:00".parse().unwrap()]);
    let never = entry(
        r#"{"command":"start_rollout","kind":"update","hosts":["h1"],"terms":{"windows":["12:00-13:00"]}}"#,
    );
    let refused = preview(&town.rules, town.now, &never).unwrap_err().to_string();
    assert!(
        refused.starts_with("the windows of the rollout and of the tenants on host h1 never overlap: web"),
        "{refused}"
    );
}
