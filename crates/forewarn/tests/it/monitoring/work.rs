//! Metrics of work that waits: unapproved events, steps on hosts, failed actions and actions without a result.

use std::fs;

use forewarn_testkit::{TestServer, wait_until};

use super::metric;
use crate::durable::site::Site;

/// The number and the age of waiting work.
fn waiting(server: &TestServer, name: &str) -> (u64, u64) {
    (metric(server, name), metric(server, &format!("{name}_oldest_seconds")))
}

#[test]
fn the_oldest_unapproved_event_has_an_age_until_it_is_approved() {
    let server = TestServer::start(crate::program());
    let events = || waiting(&server, "forewarn_events_unapproved");
    server.enrol(&["solo", "web_0"]);
    assert_eq!(events(), (0, 0));
    server.restart("solo");
    server.advance("5m");
    server.restart("web_0");
    assert_eq!(events(), (2, 300));
    // Held work is late: the age is greater than the notice.
    server.run(&["brake", "on"]);
    server.advance("1h");
    assert_eq!(events(), (2, 3_900));
    server.run(&["event", "approve", &server.ids("solo")[0]]);
    assert_eq!(events(), (1, 3_600));
    server.run(&["brake", "off"]);
    assert_eq!(events(), (0, 0));
}

#[test]
fn a_step_on_a_host_has_an_age_until_it_ends() {
    let server = TestServer::start(crate::program());
    let steps = || waiting(&server, "forewarn_host_steps");
    assert_eq!(steps(), (0, 0));
    // Only announced work takes time on simulated machines.
    server.enrol(&["solo"]);
    server.run(&["host", "update", &server.host_of("solo"), "--duration", "45s"]);
    assert_eq!(steps(), (0, 0));
    server.run(&["event", "approve", &server.ids("solo")[0]]);
    server.advance("30s");
    assert_eq!(steps(), (1, 30));
    server.advance("15s");
    assert_eq!(steps(), (0, 0));
}

#[test]
fn failed_actions_are_counted() {
    let server = TestServer::start(crate::program());
    let failed = || metric(&server, "forewarn_actions_failed_total");
    assert_eq!(failed(), 0);
    server.run(&["vm", "restart", "web_0"]);
    server.run(&["vm", "jam", "solo"]);
    server.run(&["vm", "restart", "solo"]);
    server.advance("1m");
    assert_eq!(failed(), 1);
}

const FLEET: &str = r#"
host = [{ name = "h1" }]
vm = [{ name = "a", host = "h1" }]
"#;

/// Does nothing, and answers with the text in a file.
const ANSWERS: &str = "cat >/dev/null\ncat \"$HANDS/answer\"\n";

/// The same for hosts; machines step aside and return at once.
const ANSWERS_ABOUT_HOSTS: &str = r#"case $(cat) in
    *update_host*) cat "$HANDS/answer" ;;
    *) echo '{"result":"done"}' ;;
esac
"#;

#[test]
fn an_action_is_unknown_until_its_result_is_known() {
    let site = Site::with_fleet(FLEET, "a");
    site.bring_program(ANSWERS);
    let answer = |text: &str| fs::write(site.file("answer"), text).unwrap();
    answer(r#"{"result":"unknown","message":"the host does not answer"}"#);
    let server = site.start();
    let unknown = || waiting(&server, "forewarn_actions_unknown");
    assert_eq!(unknown(), (0, 0));
    server.run(&["vm", "restart", "a"]);
    wait_until("an age", || matches!(unknown(), (1, 1..)).then_some(()));
    answer(r#"{"result":"done"}"#);
    wait_until("the end of the action", || (unknown() == (0, 0)).then_some(()));
    assert_eq!(metric(&server, "forewarn_actions_failed_total"), 0);
}

#[test]
fn a_step_of_a_driver_program_is_in_progress_until_its_result_is_known() {
    let site = Site::with_fleet(FLEET, "a");
    site.bring_program(ANSWERS_ABOUT_HOSTS);
    let answer = |text: &str| fs::write(site.file("answer"), text).unwrap();
    answer(r#"{"result":"unknown"}"#);
    let server = site.start();
    server.run(&["host", "update", "h1"]);
    let both = || (metric(&server, "forewarn_host_steps"), metric(&server, "forewarn_actions_unknown"));
    wait_until("an unknown step", || (both() == (1, 1)).then_some(()));
    answer(r#"{"result":"failed","message":"no kernel"}"#);
    wait_until("the end of the step", || (both() == (0, 0)).then_some(()));
    assert_eq!(metric(&server, "forewarn_actions_failed_total"), 1);
}

#[test]
fn metrics_are_those_of_all_clusters() {
    let server = TestServer::start(crate::program());
    let hosts = || metric(&server, "forewarn_hosts{health=\"healthy\"}");
    let before = hosts();
    server.run(&["cluster", "create", "west"]);
    let fleet = server.dir().file("west.toml");
    fs::write(&fleet, FLEET).unwrap();
    server.run(&["fleet", "apply", fleet.to_str().unwrap(), "--cluster", "west"]);
    assert_eq!(hosts(), before + 1);
}
