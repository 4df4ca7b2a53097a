//! Connection draining: what is new is refused, what is there has time, what is left is cut.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{Beside, file, script, settings};
use crate::harness::until;
use crate::world::Place;

/// A caller who connects, says when they are greeted, and stays until the connection ends.
const CALLER: &str = "import socket, sys; s = socket.create_connection((sys.argv[1], 8080)); \
    s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); s.recv(4096); print('greeted', flush=True)\n\
try:\n    rest = s.recv(4096)\n    print('closed', flush=True)\nexcept ConnectionError as problem:\n    print('cut', flush=True)\n";

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn new_connections_are_refused_and_what_is_left_is_cut_at_the_deadline() {
    let place = Place::of(&["solo", "web_0"]);
    // Less time than usual: the caller here does not go by itself.
    let draining = settings("connection-draining").changed("limit = \"5m\"", "limit = \"6s\"");
    let world = place.prepare(&[("solo", draining)]);
    let agent = world.agent("solo");
    agent.script("lib/drain", &file("connection-draining", "drain"));
    let beside = Beside::new();
    beside.run(agent.namespace(), "python3", &[&script("server.py"), "8080", "greeter"]);
    let caller = place.network().machine(1);
    let at = place.address("solo");
    let line = format!("curl --silent --max-time 5 http://{at}:8080/ || true");
    until("the service answers", || (caller.shell(&line) == "greeter").then_some(()));
    agent.start();
    world.is_settled();
    let mut staying =
        caller.command("python3").args(["-c", CALLER, &at]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(staying.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "greeted");
    let reboot = world.announce(&["vm", "restart", "solo"]);
    until("new connections are refused", || caller.shell(&line).is_empty().then_some(()));
    assert_eq!(world.status(&reboot), "Scheduled", "the one that is there has time");
    assert_eq!(said.next().unwrap().unwrap(), "cut");
    assert!(staying.wait().unwrap().success());
    world.is(&reboot, "Started");
    assert!(caller.shell(&line).is_empty());
    world.advance("1m");
    until("new connections are taken again", || (caller.shell(&line) == "greeter").then_some(()));
    assert!(agent.log().contains("connections cut: 1"), "what the hook says is in the log");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn nobody_waits_for_connections_that_are_not_there() {
    let place = Place::of(&["solo"]);
    let world = place.prepare(&[("solo", settings("connection-draining"))]);
    let agent = world.agent("solo");
    agent.script("lib/drain", &file("connection-draining", "drain"));
    agent.start();
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    world.is(&reboot, "Started");
    world.advance("1m");
    agent.is_answered_ready("200");
    assert_eq!(agent.namespace().shell("nft list tables"), "");
}
