//! Maintenance mode of hosts, as a driver program sees it: machines leave, the step on the empty host, nothing until the
//! exit, and machines return.

use std::fs::{self, File};

use serde_json::json;

use crate::durable::site::Site;
use crate::durable::steps::wait_for_end;
use forewarn_testkit::{TestServer, wait_until};

/// The orders, each phase sorted: machines of a host are ordered at the same time.
fn sorted(effects: &[String], phases: &[usize]) -> Vec<String> {
    let mut rest = effects.to_vec();
    let mut all = Vec::new();
    for length in phases {
        let mut phase: Vec<_> = rest.drain(..(*length).min(rest.len())).collect();
        phase.sort();
        all.extend(phase);
    }
    all.extend(rest);
    all
}

fn wait_for_state(server: &TestServer, host: &str, state: &str) {
    wait_until(state, || {
        (server.json(&["host", "show", host])["maintenance"]["state"] == state).then_some(())
    });
}

/// promise: E4
#[test]
fn a_host_in_maintenance_mode_is_emptied_has_its_step_and_gets_its_machines_back() {
    let site = Site::two_hosts();
    let server = site.start();
    server.run(&["host", "maintenance", "enter", "h1", "--work", "new power supply", "--wait"]);
    wait_for_state(&server, "h1", "entered");
    let gone = ["migrate a", "migrate b", "update_host h1"];
    assert_eq!(sorted(&site.effects(), &[2, 1]), gone);
    let mut order = site.order("update_host");
    order.as_object_mut().unwrap().remove("action");
    let expected = json!({
        "verb": "update_host", "host": "h1", "cause": "maintenance", "work": "new power supply",
    });
    assert_eq!(order, expected);
    let host = server.json(&["host", "show", "h1"]);
    assert_eq!(
        host["maintenance"]["text"],
        "2 machines have left; update of the host (new power supply): done"
    );
    assert!(server.run(&["host", "ls"]).contains("healthy, in maintenance mode"));
    let refused = server.try_run(&["vm", "create", "e", "--host", "h1"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("the host is in maintenance mode: h1"));
    // The mode survives a kill, and nothing happens until the operator exits.
    server.kill();
    let server = site.start();
    wait_for_state(&server, "h1", "entered");
    assert_eq!(site.effects().len(), 3);
    server.run(&["host", "maintenance", "exit", "h1", "--return", "--wait"]);
    let back = ["migrate a", "migrate b", "update_host h1", "migrate a", "migrate b"];
    wait_until("the return", || (site.effects().len() == back.len()).then_some(()));
    assert_eq!(sorted(&site.effects(), &[2, 1, 2]), back);
    wait_until("they are back", || {
        let hosts = ["a", "b"].map(|name| server.json(&["vm", "show", name])["host"].clone());
        (hosts == ["h1", "h1"]).then_some(())
    });
    assert_eq!(server.json(&["host", "show", "h1"])["maintenance"], json!(null));
}

/// promise: E4
#[test]
fn a_machine_that_does_not_leave_keeps_the_host_from_its_step_until_it_leaves_otherwise() {
    let site = Site::two_hosts();
    fs::write(site.file("answer-migrate"), r#"{"result":"failed","message":"no shared disk"}"#).unwrap();
    let server = site.start();
    server.run(&["host", "maintenance", "enter", "h1", "--kind", "reboot"]);
    wait_for_state(&server, "h1", "incomplete");
    let host = server.json(&["host", "show", "h1"]);
    let remaining = &host["maintenance"]["remaining"];
    assert_eq!(*remaining, json!(["a/a", "b/b"]), "{host}");
    assert!(site.effects().iter().all(|effect| effect.starts_with("migrate ")), "no step");
    server.run(&["host", "maintenance", "enter", "h1", "--move", "stop"]);
    wait_for_state(&server, "h1", "entered");
    let effects = ["migrate a", "migrate b", "stop a", "stop b", "reboot_host h1"];
    assert_eq!(sorted(&site.effects(), &[2, 2, 1]), effects);
    assert_eq!(server.json(&["vm", "show", "a"])["power"], "stopped");
    let printed = server.run(&["host", "maintenance", "exit", "h1"]);
    assert!(printed.contains("h1 is no longer in maintenance mode."), "{printed}");
    assert!(
        printed.contains("a/a, b/b left because of the maintenance mode, and stay as they are."),
        "{printed}"
    );
    assert_eq!(server.json(&["vm", "show", "a"])["power"], "stopped");
}

/// promise: D2
#[test]
fn killed_while_machines_leave_each_order_takes_effect_once() {
    let site = Site::two_hosts();
    let gaps = ["redeploy-before", "redeploy-after", "update_host-before", "update_host-after"];
    for gap in gaps {
        File::create(site.file(&format!("hold-{gap}"))).unwrap();
    }
    let mut server = site.start();
    server.run(&["host", "maintenance", "enter", "h1", "--move", "redeploy", "--kind", "update"]);
    for gap in gaps {
        wait_until(gap, || fs::exists(site.file(&format!("at-{gap}"))).unwrap().then_some(()));
        let refused = server.try_run(&["host", "maintenance", "exit", "h1"]);
        assert!(String::from_utf8(refused.stderr).unwrap().contains("is in progress: h1"));
        server.kill();
        server = site.start();
        fs::remove_file(site.file(&format!("hold-{gap}"))).unwrap();
    }
    wait_for_end(&server, &["h1"]);
    wait_for_state(&server, "h1", "entered");
    assert_eq!(sorted(&site.effects(), &[2, 1]), ["redeploy a", "redeploy b", "update_host h1"]);
}
