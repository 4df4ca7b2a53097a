//! The clock: where it stops, and what it reports.

use forewarn_testkit::{TestServer, clean_command};
use serde_json::{Value, json};

use crate::program;

fn failure(server: &TestServer, words: &[&str]) -> String {
    let output = server.try_run(words);
    assert!(!output.status.success(), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Every state that events got, without the ids.
fn happened(clock: &Value) -> Vec<String> {
    let one = |event: &Value| {
        let word = |name: &str| event[name].as_str().unwrap();
        format!("{} {} {} {}", word("at"), word("status"), word("type"), event["resources"])
    };
    clock["happened"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn an_advance_reports_what_happened_meanwhile_and_nothing_from_before() {
    let server = TestServer::start(program());
    server.enrol(&["solo", "web_0"]);
    let id = server.restart("solo");
    let idle = server.run(&["clock", "advance", "1m"]);
    assert!(idle.starts_with("now    2026-01-01 00:01:00Z\n"), "{idle}");
    assert!(idle.ends_with("\n\nNo event appeared, started or ended.\n"), "{idle}");
    let next = server.json(&["clock", "next"]);
    assert_eq!(next["now"], "2026-01-01T00:15:00Z");
    assert_eq!(happened(&next), [r#"2026-01-01T00:15:00Z Started Reboot ["solo"]"#]);
    assert_eq!(next["happened"][0]["event"], id.as_str());
    assert_eq!(
        (&next["happened"][0]["tenant"], &next["happened"][0]["cluster"]),
        (&"solo".into(), &"default".into())
    );
    let next = server.run(&["clock", "next"]);
    let line = next.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.ends_with(&format!("{} Reboot Completed solo solo", &id[..8])), "{next}");
    assert!(
        next.contains("\nTIME                  ID        EVENT   STATUS     TENANT  MACHINES\n"),
        "{next}"
    );
}

/// The clock is common to all clusters, and so is its report.
#[test]
fn an_advance_reports_events_of_every_cluster() {
    let server = TestServer::start(program());
    server.run(&["cluster", "create", "west"]);
    server.run(&["host", "add", "w1", "--cluster", "west"]);
    server.run(&["vm", "create", "far", "--host", "w1", "--cluster", "west"]);
    server.run(&["settings", "set", "--enrolment", "always", "--cluster", "west"]);
    server.run(&["vm", "restart", "far", "--cluster", "west"]);
    let clock = server.json(&["clock", "advance", "15m"]);
    assert!(happened(&clock).iter().any(|line| line.ends_with(r#"Started Reboot ["far"]"#)), "{clock}");
    assert!(clock["happened"].as_array().unwrap().iter().all(|event| event["cluster"] == "west"), "{clock}");
}

#[test]
fn the_clock_is_set_until_a_time_or_an_event() {
    let server = TestServer::start(program());
    server.enrol(&["solo"]);
    let id = server.restart("solo");
    let clock = server.json(&["clock", "until", "2026-01-01T00:10:00Z"]);
    assert_eq!((&clock["now"], &clock["happened"]), (&"2026-01-01T00:10:00Z".into(), &json!([])));
    let clock = server.json(&["clock", "until", &id[..6]]);
    assert_eq!(clock["now"], "2026-01-01T00:15:00Z");
    assert_eq!(happened(&clock), [r#"2026-01-01T00:15:00Z Started Reboot ["solo"]"#]);
    let started = failure(&server, &["clock", "until", &id]);
    assert_eq!(started, format!("forewarn: event {id} has already started\n"));
    let back = failure(&server, &["clock", "until", "2026-01-01T00:10:00Z"]);
    assert_eq!(
        back,
        "forewarn: the time is not in the future: 2026-01-01T00:10:00Z\n  hint: a clock is only set forward\n"
    );
    let beyond = failure(&server, &["clock", "until", "9998-01-01T00:00:00Z"]);
    assert!(beyond.starts_with("forewarn: time is out of range"), "{beyond}");
    let none = failure(&server, &["clock", "until", "2026-01-01"]);
    assert!(none.contains("invalid time or event: \"2026-01-01\""), "{none}");
    let unknown = failure(&server, &["clock", "until", "ABCDEF"]);
    assert!(unknown.starts_with("forewarn: no such event: ABCDEF\n  hint: "), "{unknown}");
    let audit = server.run(&["audit", "export", "-"]);
    assert!(audit.contains(r#""clock":"until","at":"2026-01-01T00:10:00Z""#), "{audit}");
}

/// `dev --clock` and `clock scale` read a speed in the same way.
#[test]
fn a_speed_has_one_syntax() {
    for (word, speed) in [("60", 60), ("60x", 60), ("real", 1), ("frozen", 0)] {
        let server = TestServer::start(program());
        let clock = server.json(&["clock", "scale", word]);
        assert_eq!(clock["speed"], speed, "{word}");
    }
    let wanted = "a whole number from 1 to 1000000, such as 60 or 60x";
    for word in ["0.5x", "0", "fast"] {
        let server_command = clean_command(program()).args(["dev", "--clock", word]).output().unwrap();
        let client_command = clean_command(program()).args(["clock", "scale", word]).output().unwrap();
        for output in [server_command, client_command] {
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(&format!("invalid speed: {word}")) && said.contains(wanted), "{said}");
        }
    }
}

/// Times in documents have whole seconds: a notice of a frozen clock is as long as it says.
/// promise: N4
#[test]
fn a_clock_freezes_on_a_whole_second() {
    let server = TestServer::start(program());
    for _ in 0..5 {
        server.run(&["clock", "scale", "real"]);
        let clock = server.json(&["clock", "freeze"]);
        let now = clock["now"].as_str().unwrap();
        assert!(!now.contains('.'), "{now}");
        assert_eq!(server.json(&["clock", "freeze"])["now"], now, "a second time it stands already");
    }
}
