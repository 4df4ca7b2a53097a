//! An etcd that was restored from an older backup: it is detected, and an operator accepts its state.

use std::process::Output;

use forewarn_testkit::raw_http::{self, NEWEST, approve};
use forewarn_testkit::{TestServer, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use super::commands::{all_active, refused};
use super::site::{RealmSite, document, event, settings};
use super::{PollingMachine, end_all};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn incarnation(server: &TestServer) -> u64 {
    document(server)["DocumentIncarnation"].as_u64().expect("a number")
}

/// Restarts the machine, and returns the id of the event.
fn restart(server: &TestServer) -> String {
    server.run(&["vm", "restart", "solo"]);
    wait_until("the event is shown", || event(server)).0
}

/// Runs `realm accept-restore` with the configuration of a server.
fn accept(site: &RealmSite, number: usize, words: &[&str]) -> Output {
    let place = &site.places[number];
    let config = settings(&site.etcd, number, "api.socket = 'DIR/api.sock'");
    let config = place.configure("accept.toml", &config);
    let command = ["realm", "accept-restore", "--config", &config];
    place.command().args(command).args(words).output().expect("the program runs")
}

/// The error of a command that has to fail.
fn error(output: &Output) -> String {
    let error = text(&output.stderr);
    assert!(!output.status.success(), "it succeeds: {}", text(&output.stdout));
    assert!(error.contains("hint: "), "{error}");
    error
}

/// Every server owns nothing, says why, and answers machines.
fn check_halted(site: &RealmSite) {
    for (_, server) in site.running() {
        let error = refused(server, &["host", "create", "after"]);
        assert!(
            error.contains("the engine was restored from an older backup")
                && error.contains("forewarn realm accept-restore --config FILE"),
            "{error}"
        );
        let shown = server.json(&["realm", "show"]);
        assert!(shown["restored"].as_str().is_some_and(|why| why.contains("ends with batch")), "{shown}");
        assert!(server.run(&["realm", "show"]).contains("forewarn realm accept-restore"));
        let health = text(&server.try_run(&["health"]).stderr);
        assert!(health.contains("accept-restore"), "{health}");
        document(server);
    }
}

/// Every server has set its copy aside, and goes on with later documents and the audit log of before.
fn check_renewed(site: &RealmSite, seen: u64) {
    for (number, server) in site.running() {
        server.wait_for_log("the former copy of the log is set aside");
        assert!(site.places[number].file("data/before-restore-1/journal.db").exists());
        assert!(incarnation(server) > seen, "{} after {seen}", document(server));
        assert_eq!(event(server), None);
        let realm = server.json(&["realm", "show"]);
        assert_eq!((&realm["restores"], &realm["restored"]), (&1.into(), &Value::Null));
        wait_until("the audit log of before is back", || {
            let log = server.run(&["audit", "export", "-"]);
            assert!(!log.contains("\"lost\""), "{log}");
            log.contains("\"before\"").then_some(())
        });
        let recorded = server.run(&["audit", "ls", "--kind", "restore_accepted"]);
        assert!(recorded.contains("incarnations grew"), "{recorded}");
        server.run(&["audit", "verify"]);
    }
}

/// Stops all servers: one is killed.
fn stop_all(site: &mut RealmSite) {
    for (number, server) in site.servers.iter_mut().enumerate() {
        let Some(server) = server.take() else { continue };
        if number == 0 {
            server.kill();
        } else {
            server.signal(Signal::TERM);
            assert!(server.end().success());
        }
    }
}

/// promise: D4
#[test]
fn a_restored_etcd_is_detected_and_its_older_state_accepted() {
    let Some(mut site) = RealmSite::start() else { return };
    all_active(&site);
    site.create_host(0, "before");
    site.check_all();
    site.etcd.back_up();
    site.server(1).run(&["host", "create", "lost"]);
    let lost = restart(site.server(1));
    let seen = site.running().map(|(_, server)| incarnation(server)).max().expect("servers run");
    let polling: Vec<_> =
        site.running().map(|(_, server)| PollingMachine::start(server.metadata())).collect();
    site.etcd.restore();
    for (_, server) in site.running() {
        server.wait_for_log("engine was restored from an older backup");
    }
    // A restart changes nothing.
    end_all(polling);
    site.servers[2].take().expect("it runs").kill();
    site.start_server(2);
    check_halted(&site);
    let running = error(&accept(&site, 1, &["--yes"]));
    assert!(running.contains("servers of the realm are running: s0, s1, s2"), "{running}");
    stop_all(&mut site);
    let unconfirmed = error(&accept(&site, 0, &[]));
    assert!(
        unconfirmed.contains("confirmation is required") && unconfirmed.contains("--yes"),
        "{unconfirmed}"
    );
    assert!(unconfirmed.contains("cluster-0  default"), "it says what is lost: {unconfirmed}");
    let accepted = accept(&site, 0, &["--yes", "-o", "json"]);
    assert!(accepted.status.success(), "{}", text(&accepted.stderr));
    let report: Value = serde_json::from_slice(&accepted.stdout).expect("JSON");
    assert_eq!((&report["restores"], &report["hosts"]), (&1.into(), &2.into()), "{report}");
    let streams = report["streams"].as_array().expect("streams");
    let lost_batches = |one: &Value| one["cluster"] == "default" && one["lost"].as_u64() > Some(0);
    assert!(streams.iter().any(lost_batches), "{report}");
    let again = error(&accept(&site, 1, &["--yes"]));
    assert!(again.contains("an older state was accepted already"), "{again}");

    (0..3).for_each(|number| site.start_server(number));
    all_active(&site);
    site.check_all();
    check_renewed(&site, seen);
    // The brake holds starts, also of what is approved.
    let new = restart(site.server(1));
    assert_ne!(new, lost, "an id is used once");
    wait_until("another server shows the event", || event(site.server(2)));
    let answer = raw_http::ask(site.server(2).metadata(), &raw_http::post(NEWEST, &approve(&[&new])));
    assert_eq!(answer.expect("an answer").status(), 200);
    assert_eq!(event(site.server(0)), Some((new, "Scheduled".to_owned())));
    site.server(0).run(&["brake", "off"]);
    wait_until("the event starts", || {
        event(site.server(0)).is_none_or(|(_, status)| status == "Started").then_some(())
    });
    for number in 0..3 {
        site.create_host(number, &format!("through-s{number}"));
    }
    site.check_all();
    let backup = site.places[0].path("backup");
    assert_eq!(site.server(0).json(&["backup", &backup])["hosts"], 5);
    // Nothing more is set aside, and there is nothing more to accept.
    stop_all(&mut site);
    let nothing = error(&accept(&site, 2, &["--yes"]));
    assert!(nothing.contains("nothing to accept: etcd has everything"), "{nothing}");
    site.start_server(0);
    assert!(!site.places[0].file("data/before-restore-2").exists());
}

/// The settings of a server without others.
fn alone() -> String {
    "data_dir = 'DIR/data'\ndriver.kind = 'simulated'\n[[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n"
        .to_owned()
}

/// promise: D4
#[test]
fn a_configuration_without_a_realm_accepts_nothing() {
    let place = forewarn_testkit::ServeDir::new(crate::program(), forewarn_testkit::SOLO_FLEET);
    let config = place.configure("single.toml", &alone());
    let command = ["realm", "accept-restore", "--yes", "--config", &config];
    let output = place.command().args(command).output().expect("the program runs");
    let error = error(&output);
    assert!(error.contains("the configuration is that of a single server"), "{error}");
}
