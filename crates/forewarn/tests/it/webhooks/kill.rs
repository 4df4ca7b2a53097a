//! Nothing is lost, whenever the server is killed; what is told twice has the same id.

use std::collections::BTreeMap;

use tempfile::TempDir;

use crate::program;
use forewarn_testkit::server::dev;
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver, add, shorts, show, until_state};
use forewarn_testkit::{TestServer, clean_command, wait_until};

const MACHINES: [&str; 4] = ["solo", "web_0", "db-0", "batch_0"];

/// `forewarn dev` with the demo fleet, on a directory.
fn start(data: &TempDir) -> TestServer {
    let mut command = clean_command(program());
    dev(&mut command, &["--clock", "frozen", "--seed", "7", "--data-dir"]);
    command.arg(data.path().join("data"));
    TestServer::spawn(crate::program(), command)
}

/// Restarts that are approved and done: three notices of each.
fn live(server: &TestServer) {
    server.enrol(&MACHINES);
    for machine in MACHINES {
        server.restart(machine);
    }
    for tenant in ["solo", "web", "db", "batch"] {
        server.run(&["event", "approve", "--tenant", tenant]);
    }
    server.advance("1m");
}

/// What was told first of everything, and that what was told again is the same.
fn firsts(told: &[Seen]) -> Vec<Seen> {
    let mut bodies = BTreeMap::<String, String>::new();
    let mut firsts = Vec::new();
    for seen in told {
        match bodies.insert(seen.id(), seen.body.clone()) {
            Some(before) => assert_eq!(before, seen.body, "the same id, and something else"),
            None => firsts.push(seen.clone()),
        }
    }
    firsts
}

/// promise: W2
#[test]
fn nothing_is_lost_when_the_server_is_killed_in_the_middle() {
    for stalls_at in [0, 1, 5, 11] {
        let (data, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
        let server = start(&data);
        add(&server, "ops", &receiver, &[]);
        receiver.stalls_at(Some(stalls_at));
        live(&server);
        wait_until("one is under way", || (receiver.told().len() > stalls_at).then_some(()));
        server.kill();
        receiver.stalls_at(None);

        let server = start(&data);
        let expected: Vec<_> = ["Scheduled", "Started", "Completed"]
            .iter()
            .flat_map(|status| MACHINES.iter().map(move |machine| format!("{status} {machine}")))
            .collect();
        wait_until("all is told", || (firsts(&receiver.taken()).len() >= expected.len()).then_some(()));
        let in_order = firsts(&receiver.told());
        let mut told: Vec<_> = shorts(&in_order).iter().map(|line| line.replace("Reboot ", "")).collect();
        for machine in MACHINES {
            let of: Vec<_> =
                told.iter().filter(|line| line.ends_with(&format!(" {machine}"))).cloned().collect();
            assert_eq!(of, ["Scheduled", "Started", "Completed"].map(|status| format!("{status} {machine}")));
        }
        let mut all = expected;
        told.sort();
        all.sort();
        assert_eq!(told, all);
        let shown = until_state(&server, "ops", "healthy");
        assert_eq!(shown["lost"], 0);
        // It was asked once whether it wants to be told: that it does was kept.
        let asked = receiver.seen().iter().filter(|seen| seen.line.starts_with("OPTIONS")).count();
        assert_eq!(asked, 1);
    }
}

/// A server that is told to stop writes down how far it came: nothing is told twice.
/// promise: W2
#[test]
fn a_server_that_stops_tells_nothing_twice() {
    let (data, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
    let server = start(&data);
    add(&server, "ops", &receiver, &[]);
    live(&server);
    receiver.until_taken(12);
    let told = |server: &TestServer| show(server, "ops")["last_entries"]["default"].clone();
    let before = wait_until("it is noted", || {
        let told = told(&server);
        (told.as_u64().unwrap_or(0) > 0 && show(&server, "ops")["delivered"] == 12).then_some(told)
    });
    server.signal(rustix::process::Signal::TERM);
    assert!(server.end().success());
    let server = start(&data);
    until_state(&server, "ops", "healthy");
    assert!(told(&server).as_u64().unwrap() >= before.as_u64().unwrap());
    server.restart("solo");
    let taken = receiver.until_taken(13);
    assert_eq!((taken.len(), firsts(&taken).len()), (13, 13));
}

/// While it takes nothing, over a restart: it has been so since then, and what waits is told when it is over.
/// promise: W2
#[test]
fn what_could_not_be_told_is_told_by_the_next_server() {
    let (data, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
    let server = start(&data);
    add(&server, "ops", &receiver, &[]);
    receiver.refuses(Some("503 Service Unavailable"));
    live(&server);
    let since = until_state(&server, "ops", "failing")["failing_since"].clone();
    server.signal(rustix::process::Signal::TERM);
    assert!(server.end().success());
    let server = start(&data);
    assert_eq!(until_state(&server, "ops", "failing")["failing_since"], since);
    receiver.refuses(None);
    wait_until("all is told", || (firsts(&receiver.taken()).len() >= 12).then_some(()));
    let shown = until_state(&server, "ops", "healthy");
    assert_eq!((&shown["failing_since"], &shown["lost"]), (&serde_json::Value::Null, &0.into()));
}

const FLEET: &str =
    "site = { location = 'far-west' }\nhost = [{ name = 'h1' }]\nvm = [{ name = 'lone', host = 'h1' }]\n";

/// A cluster that is removed after an event in it.
fn live_in_west(server: &TestServer, files: &TempDir) {
    let fleet = files.path().join("fleet.toml");
    std::fs::write(&fleet, FLEET).unwrap();
    server.run(&["cluster", "create", "west"]);
    let in_west = |arguments: &[&str]| server.run(&[&["--cluster", "west"], arguments].concat());
    in_west(&["fleet", "apply", fleet.to_str().unwrap()]);
    server.enrol(&["west/lone/lone"]);
    in_west(&["vm", "restart", "lone"]);
    in_west(&["event", "approve", "--tenant", "lone"]);
    server.advance("1m");
    in_west(&["vm", "delete", "lone", "--yes"]);
    in_west(&["host", "delete", "h1"]);
    server.run(&["cluster", "delete", "west"]);
}

/// promise: W2
#[test]
fn events_of_a_removed_cluster_are_told_by_the_next_server() {
    for is_killed in [true, false] {
        let (data, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
        let server = start(&data);
        add(&server, "ops", &receiver, &[]);
        receiver.refuses(Some("503 Service Unavailable"));
        live_in_west(&server, &data);
        until_state(&server, "ops", "failing");
        if is_killed {
            server.kill();
        } else {
            server.signal(rustix::process::Signal::TERM);
            assert!(server.end().success());
        }
        let server = start(&data);
        until_state(&server, "ops", "failing");
        receiver.refuses(None);
        wait_until("all is told", || (firsts(&receiver.taken()).len() >= 3).then_some(()));
        let told = receiver.taken();
        assert_eq!(shorts(&told), ["Scheduled Reboot lone", "Started Reboot lone", "Completed Reboot lone"]);
        let location = |seen: &Seen| seen.json()["data"]["resourceInfo"]["location"].clone();
        assert!(told.iter().all(|seen| location(seen) == "far-west"), "{told:?}");
        assert_eq!(until_state(&server, "ops", "healthy")["lost"], 0);
        // Once that is noted, the cluster is forgotten, and the next server has nothing to tell.
        wait_until("it is noted", || (show(&server, "ops")["delivered"] == 0).then_some(()));
        server.kill();
        let server = start(&data);
        until_state(&server, "ops", "healthy");
        server.enrol(&["solo"]);
        server.restart("solo");
        assert_eq!(shorts(&receiver.until_taken(4))[3], "Scheduled Reboot solo");
    }
}
