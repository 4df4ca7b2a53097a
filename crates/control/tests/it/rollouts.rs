//! Rollouts on terms: what they come to, how they are shown and told.

use forewarn_control::*;
use forewarn_lifecycle::*;

use forewarn_testkit::TestCluster;

fn command(json: &str) -> NamedCommand {
    serde_json::from_str(json).unwrap()
}

#[test]
fn hosts_are_selected_by_name_or_by_zone_or_all_without_those_that_failed() {
    let mut town = TestCluster::with_pairs();
    let hosts = |town: &TestCluster, hosts: &str| {
        let start = command(&format!(r#"{{"command":"start_rollout","kind":"update","hosts":{hosts}}}"#));
        let Resolved::Rules(Command::Rollout { hosts, terms, .. }) = start.resolve(&town.rules).unwrap()
        else {
            panic!("{start:?}")
        };
        assert_eq!(terms, RolloutTerms::default());
        hosts
    };
    assert_eq!(hosts(&town, r#"["h3","h1"]"#), [HostId(2), HostId(0)]);
    assert_eq!(hosts(&town, r#""all""#).len(), 6);
    assert_eq!(hosts(&town, r#"{"zone":1}"#), [HostId(0), HostId(2), HostId(4)]);
    town.run_text(r#"{"command":"fail_host","host":"h3"}"#);
    assert_eq!(hosts(&town, r#"{"zone":1}"#), [HostId(0), HostId(4)]);
    for (wrong, why) in [
        (r#"{"command":"start_rollout","kind":"update","hosts":7}"#, "hosts are a list of names"),
        (r#"{"command":"start_rollout","kind":"fly","hosts":"all"}"#, "unknown variant `fly`"),
        (r#"{"command":"start_rollout","kind":"update","hosts":"all","terms":{"often":1}}"#, "unknown field"),
        (
            r#"{"command":"start_rollout","kind":"update","hosts":"all","terms":{"windows":["x"]}}"#,
            "invalid window",
        ),
    ] {
        let problem = serde_json::from_str::<NamedCommand>(wrong).unwrap_err().to_string();
        assert!(problem.contains(why), "{problem}");
    }
    let share =
        command(r#"{"command":"start_rollout","kind":"update","hosts":"all","terms":{"tenant_share":0}}"#);
    assert!(share.resolve(&town.rules).unwrap_err().to_string().contains("1 to 100 %"));
}

#[test]
fn a_rollout_says_what_it_waits_for_and_remembers_what_it_did() {
    let mut town = TestCluster::with_pairs();
    town.run_text(
        r#"{"command":"start_rollout","kind":"reboot","hosts":"all","terms":{"at_once":1,"pause_between":"1h","tenant_share":50}}"#,
    );
    let going = town.rollout(0);
    assert_eq!((going.state.as_str(), going.current_hosts.as_slice()), ("going", &["h1".to_owned()][..]));
    assert_eq!(going.text, "1 host of it: waits for approval or for the end of the notice");
    assert_eq!((going.terms.at_once, going.terms.tenant_share, going.waiting.len()), (Some(1), Some(50), 5));
    town.advance(900);
    let Action { maintenance, target, .. } = town.work.pop().unwrap();
    town.submit(&Command::Complete { maintenance, target, report: Report::Failed });
    let paused = town.rollout(0);
    assert_eq!(
        (paused.state.as_str(), paused.failed.as_slice()),
        ("paused-by-failures", &["h1".to_owned()][..])
    );
    assert_eq!(paused.text, "paused automatically: 1 impact failed");
    town.run_text(r#"{"command":"resume_rollout","rollout":0}"#);
    town.tick();
    assert_eq!(town.rollout(0).text, "pauses for 1h before its next group");
    town.run_text(r#"{"command":"change_rollout","rollout":0,"remove":["h2"],"terms":{"windows":["12:00-13:00"],"pause_between":"0s"}}"#);
    town.tick();
    let waits = town.rollout(0);
    assert_eq!((waits.state.as_str(), waits.terms.at_once), ("waits-for-window", Some(1)));
    assert!(waits.text.ends_with("the next group is announced at 2026-01-01T11:45:00Z"), "{}", waits.text);
    town.run_text(r#"{"command":"pause_rollout","rollout":0}"#);
    assert_eq!(town.rollout(0).state, "paused");
    town.run_text(r#"{"command":"cancel_rollout","rollout":0}"#);
    let over = town.rollout(0);
    assert_eq!((over.state.as_str(), over.waiting.len()), ("cancelled", 4));
    assert_eq!(over.text, "cancelled: 0 done, 1 failed, 4 not started");
    assert!(over.ended_at.is_some());
    let told: Vec<_> = town.told.iter().filter(|told| told.text.starts_with("rollout")).collect();
    let kinds: Vec<_> = told.iter().map(|told| told.kind.as_str()).collect();
    assert_eq!(kinds, ["planned", "paused", "resumed", "waits", "changed", "waits", "paused", "ended"]);
    assert_eq!(told.last().unwrap().text, "rollout 0 ended: cancelled: 0 done, 1 failed, 4 not started");
}
