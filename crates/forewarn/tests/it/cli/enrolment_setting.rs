//! The rule of enrolment, as an operator sets and sees it.

use crate::cli::support::Server;

#[test]
fn every_tenant_of_a_server_may_be_enrolled_from_the_start() {
    let server = Server::start_with("--enrolled");
    assert_eq!(server.json("settings show")["enrolment"], "always");
    for tenant in server.json("tenant ls")["items"].as_array().unwrap() {
        assert_eq!(
            (&tenant["enrolled"], &tenant["enrolled_by_setting"]),
            (&true.into(), &true.into()),
            "{tenant}"
        );
    }
    assert_eq!(server.out("wait --enrolled web --timeout 0s"), "web is enrolled by setting.\n");
    server.out("vm restart web_0 --require-notice");
    assert_eq!(server.json("event ls")["items"].as_array().unwrap().len(), 1);
    assert!(server.out("vm explain web_0").contains("enrolled   yes, by setting\n"));
    assert!(server.out("scaleset explain web").contains("enrolled   yes, by setting\n"));
    server.out("vm create late --host h1");
    assert_eq!(server.json("tenant show late")["enrolled"], true, "a new one too");
    server.out("clock advance 2d");
    assert_eq!(server.json("tenant show solo")["enrolled"], true, "silence ends nothing");

    assert_eq!(server.out("settings set --enrolment on-first-poll"), "Settings changed.\n");
    let solo = server.json("tenant show solo");
    assert_eq!((&solo["enrolled"], solo.get("enrolled_by_setting")), (&true.into(), None));
    server.out("clock advance 23h59m");
    assert_eq!(server.json("tenant show solo")["enrolled"], true);
    server.out("clock advance 1m");
    assert_eq!(server.json("tenant show solo")["enrolled"], false);
    assert!(server.out("vm explain solo").contains("enrolled   no\n"));
}

#[test]
fn a_wait_for_enrolment_ends_when_the_setting_changes() {
    let server = Server::start();
    let waiting = server.begin("wait --enrolled solo");
    server.out("settings set --enrolment always");
    let ran = waiting.end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "solo is enrolled by setting.\n"), "{ran:?}");
    assert_eq!(server.out("settings set --enrolment always"), "The settings already have these values.\n");
}

#[test]
fn a_fleet_file_has_the_rule_of_enrolment() {
    let server = Server::start_with("--fleet none");
    let fleet = "enrolment = \"always\"\n[[host]]\nname = \"h1\"\n[[vm]]\nname = \"solo\"\nhost = \"h1\"\n";
    let file = server.file("fleet.toml", fleet).display().to_string();
    let applied = server.out(&format!("fleet apply {file}"));
    assert!(applied.starts_with("~ enrolment: on-first-poll -> always\n+ host h1\n"), "{applied}");
    assert_eq!(server.json("tenant show solo")["enrolled"], true);
    assert!(server.out("fleet show").starts_with("enrolment = \"always\"\n"));
    // A file without the rule leaves it.
    let bare = server.file("bare.toml", fleet.split_once('\n').unwrap().1).display().to_string();
    server.out(&format!("fleet apply {bare}"));
    assert_eq!(server.json("settings show")["enrolment"], "always");
    let wrong = server.file("wrong.toml", "enrolment = \"never\"\n").display().to_string();
    let refused = server.run(&format!("fleet apply {wrong}"));
    assert!(refused.code != Some(0) && refused.err.contains("on-first-poll"), "{refused:?}");
    let usual = Server::start();
    assert!(!usual.out("fleet show").contains("enrolment"), "the usual rule is not written");
}

/// The setting and the enrolments are stored.
#[test]
fn the_rule_survives_a_restart() {
    let directory = forewarn_testkit::TestDir::new();
    let place = directory.file("data").display().to_string();
    let server = Server::start_with(&format!("--enrolled --data-dir {place}"));
    server.out("vm restart solo --require-notice");
    drop(server);
    let again = Server::start_with(&format!("--data-dir {place}"));
    assert_eq!(again.json("settings show")["enrolment"], "always");
    assert_eq!(again.json("tenant show web")["enrolled_by_setting"], true);
}
