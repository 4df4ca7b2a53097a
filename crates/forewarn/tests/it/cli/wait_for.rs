//! `forewarn wait`: conditions that hold, that come to hold, and that do not.

use crate::cli::support::{Server, curl, shell};

/// Approves an event as a machine; the response has no body.
fn approve(server: &Server, machine: &str, event: &str) {
    let place = format!("{}/vm/{machine}/metadata/scheduledevents", server.metadata);
    let body = format!(r#"{{"StartRequests":[{{"EventId":"{event}"}}]}}"#);
    let request = format!("curl -sSf -H Metadata:true -d '{body}' '{place}?api-version=2020-07-01'");
    let ran = shell(server, &request);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Announces a restart; gives the id of its event.
fn restart(server: &Server, machine: &str) -> String {
    let outcome = server.json(&format!("vm restart {machine} --require-notice"));
    outcome["events"][0]["id"].as_str().expect("an event").to_owned()
}

#[test]
fn a_tenant_that_nobody_has_polled_for_is_not_enrolled_in_time() {
    let server = Server::start();
    for name in ["web", "web_1"] {
        let ran = server.run(&format!("wait --enrolled {name} --timeout 0s"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran:?}");
        let observed = "timed out after 0s: web is not enrolled: none of its machines has polled for events in the last 24 hours\n";
        assert!(ran.err.starts_with(&format!("forewarn: {observed}")), "{ran:?}");
        assert!(ran.err.contains("  hint: to enable events for web, poll once"), "{ran:?}");
    }
    // The hint is right.
    curl(&server.run("wait --enrolled web --timeout 0s").err);
    assert_eq!(server.out("wait --enrolled web_1 --timeout 0s"), "web is enrolled.\n");
    let unknown = server.run("wait --enrolled wep");
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.err.contains("no such"), "{unknown:?}");
}

#[test]
fn a_poll_ends_the_wait() {
    let server = Server::start();
    let waiting = server.begin("wait --enrolled web_0 --enrolled solo");
    server.enrol("solo");
    server.enrol("web_2");
    let ran = waiting.end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "web is enrolled. solo is enrolled.\n"), "{ran:?}");
    let json = server.json("wait --enrolled solo --idle");
    assert_eq!(json["conditions"][0]["condition"], "enrolled");
    assert_eq!(json["conditions"][0]["tenant"], "solo");
    assert_eq!(json["conditions"][1]["text"], "no work is in progress or announced");
}

#[test]
fn an_event_is_awaited_by_its_type_and_its_machine() {
    let server = Server::start();
    server.enrol("solo");
    server.enrol("web_0");
    let none = server.run("wait --event --timeout 0s");
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.err.contains("no event was announced; there are no events"), "{none:?}");
    let waiting = server.begin("wait --event reboot:solo");
    restart(&server, "web_0");
    let event = restart(&server, "solo");
    let ran = waiting.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("Reboot of solo"), "{ran:?}");
    assert_eq!(server.json("wait --event :solo")["conditions"][0]["event"], event.as_str());
    let other = server.run("wait --event Freeze:solo --timeout 0s");
    assert_eq!(other.code, Some(3), "{other:?}");
    let observed =
        "no Freeze event of solo was announced; announced or under way: Reboot of web_0, Reboot of solo";
    assert!(other.err.contains(observed), "{other:?}");
    let silent = server.run("wait --event :db-0 --timeout 0s");
    assert!(silent.err.contains("; db is not enrolled\n  hint: to enable events for db"), "{silent:?}");
}

/// An event that is over still counts after the entry of the command that made it, and no earlier one does.
#[test]
fn events_and_approvals_count_from_an_entry_on() {
    let server = Server::start();
    server.enrol("solo");
    let first = server.json("vm restart solo");
    let (entry, event) = (first["entry"].as_u64().unwrap(), first["events"][0]["id"].as_str().unwrap());
    approve(&server, "solo", event);
    server.out("clock advance 1m");
    assert_eq!(server.json("event ls")["items"].as_array().unwrap().len(), 0, "it is over");
    let since = |entry: u64| format!("wait --event Reboot:solo --approved solo --since {entry} --timeout 0s");
    let met = server.json(&since(entry - 1));
    assert_eq!(
        (&met["conditions"][0]["event"], &met["conditions"][1]["event"]),
        (&event.into(), &event.into())
    );
    let last = server.json("audit ls")["items"][0]["number"].as_u64().unwrap();
    let late = server.run(&since(last));
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.err.contains("no Reboot event of solo was announced"), "{late:?}");
}

/// The approval, the start and the end of the event all happen between two requests of the wait.
#[test]
fn an_approval_that_came_and_went_is_not_missed() {
    let server = Server::start();
    server.enrol("solo");
    let waiting = server.begin("wait --approved solo");
    let event = restart(&server, "solo");
    let unapproved = server.run("wait --approved solo --timeout 0s");
    assert_eq!(unapproved.code, Some(3), "{unapproved:?}");
    assert!(
        unapproved.err.contains("solo is not approved: Reboot of solo: waits for approval"),
        "{unapproved:?}"
    );
    approve(&server, "solo", &event);
    server.out("clock advance 1m");
    let ran = waiting.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with(&format!("solo has approved {event}, by ")), "{ran:?}");
    for target in ["solo", &event, &event[..8]] {
        let over = server.run(&format!("wait --approved {target} --timeout 0s"));
        assert_eq!((over.code, over.out), (Some(0), ran.out.clone()), "{target}");
    }
    // The approval of an earlier event is none of the next one.
    let next = restart(&server, "solo");
    for target in ["solo", &next] {
        assert_eq!(server.run(&format!("wait --approved {target} --timeout 0s")).code, Some(3), "{target}");
    }
    server.out("clock advance 15m");
    server.out("clock advance 1m");
    let expired = server.run("wait --approved solo --timeout 0s");
    assert!(expired.err.contains("solo is not approved, and no event is left: "), "{expired:?}");
}

/// The machine is gone with its approved deletion.
#[test]
fn the_approval_of_a_deletion_outlives_its_machine() {
    let server = Server::start();
    server.out("vm create gone --host h1 --terminate-delay 5m");
    server.enrol("gone");
    let outcome = server.json("vm delete gone --yes --require-notice");
    approve(&server, "gone", outcome["events"][0]["id"].as_str().unwrap());
    server.out("clock advance 1m");
    assert_eq!(server.run("vm show gone").code, Some(1));
    assert_eq!(server.run("wait --approved gone --timeout 0s").code, Some(0));
    assert_eq!(server.run("wait --approved never --timeout 0s").code, Some(1));
}

#[test]
fn idleness_is_no_work_announced_or_in_progress_with_or_without_events() {
    let server = Server::start();
    assert_eq!(server.out("wait --idle --timeout 0s"), "no work is in progress or announced.\n");
    server.enrol("solo");
    restart(&server, "solo");
    let busy = server.run("wait --idle --timeout 0s");
    assert_eq!(busy.code, Some(3), "{busy:?}");
    let hint = "the clock is frozen: run `forewarn clock advance 15m`, or approve the event\n";
    assert!(busy.err.starts_with(hint) && busy.err.contains("work is left: Reboot of solo"), "{busy:?}");
    let mut waiting = server.begin("wait --idle");
    waiting.hear("the clock is frozen");
    server.out("clock advance 15m");
    server.out("clock advance 1m");
    assert_eq!(waiting.end().code, Some(0));
    // web is not enrolled: its work has no event.
    server.out("settings set --unenrolled waits");
    server.out("vm restart web_0");
    let unannounced = server.run("wait --idle --timeout 0s");
    assert_eq!(unannounced.code, Some(3), "{unannounced:?}");
    assert!(
        unannounced.err.contains("work is left, without an event: 1 operation, 0 rollouts"),
        "{unannounced:?}"
    );
    let both = format!("curl -sS '{}/v1/unfinished?all=true&work=1'", server.api);
    let all = shell(&server, &both).out;
    assert!(all.contains("\"work\":["), "all work, whatever else is named: {all}");
    server.out("clock advance 15m");
    server.out("clock advance 1m");
    server.out("wait --idle --timeout 0s");
}
