//! Rollouts on terms: what they come to, how they are shown and told, and what a preview says of them.

use forewarn_control::*;
use forewarn_lifecycle::*;

use crate::town::Town;

/// Six hosts, with three update domains of `web` in pairs; enrolled.
fn town() -> Town {
    let mut town = Town::new();
    for number in 1..=6 {
        town.say(&format!(r#"{{"command":"admit_host","name":"h{number}","zone":{}}}"#, number % 2));
    }
    town.say(r#"{"command":"admit_scale_set","name":"web"}"#);
    for number in 0..6 {
        let (host, domain) = (number + 1, number / 2);
        town.say(&format!(
            r#"{{"command":"admit_instance","scale_set":"web","instance":{{"host":"h{host}","update_domain":{domain}}}}}"#
        ));
    }
    town.enrol("web");
    town
}

/// A rollout, without the word `command`.
fn entry(json: &str) -> RolloutEntry {
    let NamedCommand::StartRollout(entry) = command(json) else { panic!("{json}") };
    entry
}

fn start(hosts: &str) -> RolloutEntry {
    entry(&format!(r#"{{"command":"start_rollout","work":"update","hosts":{hosts}}}"#))
}

fn command(json: &str) -> NamedCommand {
    serde_json::from_str(json).unwrap()
}

fn view(town: &Town, id: u64) -> RolloutView {
    rollout_view(&town.cluster, town.now, RolloutId(id)).unwrap()
}

fn tick(town: &mut Town) {
    town.pass(std::time::Duration::ZERO);
}

fn advance(town: &mut Town, seconds: u64) {
    town.pass(std::time::Duration::from_secs(seconds));
}

#[test]
fn hosts_are_selected_by_name_or_by_zone_or_all_without_those_that_failed() {
    let mut town = town();
    let hosts = |town: &Town, hosts: &str| {
        let start = command(&format!(r#"{{"command":"start_rollout","work":"update","hosts":{hosts}}}"#));
        let Resolved::Rules(Command::Rollout { hosts, terms, .. }) = start.resolve(&town.cluster).unwrap()
        else {
            panic!("{start:?}")
        };
        assert_eq!(terms, Terms::default());
        hosts
    };
    assert_eq!(hosts(&town, r#"["h3","h1"]"#), [HostId(2), HostId(0)]);
    assert_eq!(hosts(&town, r#""all""#).len(), 6);
    assert_eq!(hosts(&town, r#"{"zone":1}"#), [HostId(0), HostId(2), HostId(4)]);
    town.say(r#"{"command":"fail_host","host":"h3"}"#);
    assert_eq!(hosts(&town, r#"{"zone":1}"#), [HostId(0), HostId(4)]);
    for (wrong, why) in [
        (r#"{"command":"start_rollout","work":"update","hosts":7}"#, "hosts are a list of names"),
        (r#"{"command":"start_rollout","work":"fly","hosts":"all"}"#, "unknown variant `fly`"),
        (r#"{"command":"start_rollout","work":"update","hosts":"all","terms":{"often":1}}"#, "unknown field"),
        (
            r#"{"command":"start_rollout","work":"update","hosts":"all","terms":{"windows":["x"]}}"#,
            "not a window",
        ),
    ] {
        let problem = serde_json::from_str::<NamedCommand>(wrong).unwrap_err().to_string();
        assert!(problem.contains(why), "{problem}");
    }
    let share =
        command(r#"{"command":"start_rollout","work":"update","hosts":"all","terms":{"tenant_share":0}}"#);
    assert!(share.resolve(&town.cluster).unwrap_err().to_string().contains("1 to 100 %"));
}

#[test]
fn a_preview_is_what_happens_then() {
    let mut town = town();
    let start = r#"{"command":"start_rollout","work":"update","hosts":"all","terms":{"pause_between":"10m","confirm":"first"}}"#;
    let before = town.cluster.clone();
    let seen = preview(&town.cluster, town.now, &entry(start)).unwrap();
    assert_eq!(town.cluster, before);
    assert_eq!((seen.work.as_str(), seen.hosts, seen.longest.steps.len()), ("update", 6, 3));
    assert_eq!(forewarn_types::show_duration(seen.longest.lasts.0), "1h5m27s");
    assert_eq!(forewarn_types::show_duration(seen.shortest.lasts.0), "20m27s");
    assert_eq!((&seen.longest.stuck, &seen.notes[..]), (&None, &[][..]));
    town.say(start);
    for step in &seen.longest.steps {
        assert_eq!(view(&town, 0).current_hosts, step.hosts);
        assert_eq!(step.announced.0, town.now.wall);
        assert_eq!(step.tenants.len(), 1);
        assert_eq!(step.tenants[0].event.as_deref(), Some("Freeze"));
        assert_eq!(step.tenants[0].machines.len(), 2);
        advance(&mut town, 900);
        assert_eq!(step.starts.0, town.now.wall);
        advance(&mut town, 9);
        town.finish();
        assert_eq!(step.ends.0, town.now.wall);
        tick(&mut town);
        if view(&town, 0).state == "waits-for-confirmation" {
            town.say(r#"{"command":"resume_rollout","rollout":0}"#);
        }
        advance(&mut town, 600);
    }
    assert_eq!(view(&town, 0).state, "finished");
}

#[test]
fn a_preview_says_what_it_cannot_know_and_what_is_refused() {
    let mut town = town();
    town.say(r#"{"command":"brake_on"}"#);
    let seen = preview(&town.cluster, town.now, &start(r#"["h1"]"#)).unwrap();
    assert_eq!((seen.notes.len(), seen.longest.steps.len()), (1, 1));
    assert!(matches!(preview(&town.cluster, town.now, &start(r#"["h9"]"#)), Err(NoPreview::Bad(_))));
    assert_eq!(
        preview(&town.cluster, town.now, &start(r#"{"zone":9}"#)),
        Err(NoPreview::Refused(Refusal::NoHosts))
    );
    // A host that is in planned work already keeps the other update domains waiting: its notice runs out first.
    town.say(r#"{"command":"brake_off"}"#);
    town.say(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let seen = preview(&town.cluster, town.now, &start(r#"["h3"]"#)).unwrap();
    let announced = seen.shortest.steps[0].announced.0.since(town.now.wall);
    assert_eq!(announced.as_secs(), 909);
    // Where something is not well for good, it does not come to an end.
    town.say(r#"{"command":"fail_host","host":"h1"}"#);
    tick(&mut town);
    let windows = entry(
        r#"{"command":"start_rollout","work":"reboot","hosts":["h3","h4"],"terms":{"windows":["sun 03:00-04:00"]}}"#,
    );
    let seen = preview(&town.cluster, town.now, &windows).unwrap();
    assert!(seen.longest.steps.iter().all(|step| step.starts.to_string().contains("T03:")), "{seen:?}");
}

#[test]
fn a_rollout_says_what_it_waits_for_and_remembers_what_it_did() {
    let mut town = town();
    town.say(
        r#"{"command":"start_rollout","work":"reboot","hosts":"all","terms":{"at_once":1,"pause_between":"1h","tenant_share":50}}"#,
    );
    let going = view(&town, 0);
    assert_eq!((going.state.as_str(), going.current_hosts.as_slice()), ("going", &["h1".to_owned()][..]));
    assert_eq!(going.text, "1 host of it: waits for approval or for the end of the notice");
    assert_eq!((going.terms.at_once, going.terms.tenant_share, going.waiting.len()), (Some(1), Some(50), 5));
    advance(&mut town, 900);
    let Action { maintenance, machine, .. } = town.work.pop().unwrap();
    town.submit(&Command::Complete { maintenance, machine, report: Report::Failed });
    let paused = view(&town, 0);
    assert_eq!(
        (paused.state.as_str(), paused.failed.as_slice()),
        ("paused-by-failures", &["h1".to_owned()][..])
    );
    assert_eq!(paused.text, "has paused itself: 1 impact failed");
    town.say(r#"{"command":"resume_rollout","rollout":0}"#);
    tick(&mut town);
    assert_eq!(view(&town, 0).text, "rests for 1h before its next group");
    town.say(r#"{"command":"change_rollout","rollout":0,"remove":["h2"],"terms":{"windows":["12:00-13:00"],"pause_between":"0s"}}"#);
    tick(&mut town);
    let waits = view(&town, 0);
    assert_eq!((waits.state.as_str(), waits.terms.at_once), ("waits-for-window", Some(1)));
    assert!(waits.text.ends_with("the next group is announced at 2026-01-01T11:45:00Z"), "{}", waits.text);
    town.say(r#"{"command":"pause_rollout","rollout":0}"#);
    assert_eq!(view(&town, 0).state, "paused");
    town.say(r#"{"command":"cancel_rollout","rollout":0}"#);
    let over = view(&town, 0);
    assert_eq!((over.state.as_str(), over.waiting.len()), ("cancelled", 4));
    assert_eq!(over.text, "cancelled: 0 done, 1 failed, 4 not begun");
    assert!(over.ended_at.is_some());
    let told: Vec<_> = town.told.iter().filter(|told| told.text.starts_with("rollout")).collect();
    let kinds: Vec<_> = told.iter().map(|told| told.kind.as_str()).collect();
    assert_eq!(kinds, ["planned", "paused", "resumed", "waits", "changed", "waits", "paused", "ended"]);
    assert_eq!(told.last().unwrap().text, "rollout 0 is over, cancelled: 0 done, 1 failed, 4 not begun");
}
