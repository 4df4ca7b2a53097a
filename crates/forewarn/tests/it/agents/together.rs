//! Three machines that share a host: nobody approves before all of them are ready, and it is done once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use forewarn_testkit::agents::AgentSettings;
use forewarn_testkit::agents::{AgentNetwork, RunningAgents};
use forewarn_testkit::network::Namespace;

const ALL: [&str; 3] = ["db_0", "db_1", "db_2"];

/// Holds a hook until the test says go.
const GATE: &str = "#!/bin/sh\nuntil [ -e DIR/go ]; do sleep 0.05; done\n\"$@\"\n";

fn gated(peers: &str) -> AgentSettings {
    AgentSettings::default()
        .hook("drain", "scheduled", "command = [\"DIR/gate\", NOTE]\nundo = [NOTE]")
        .noting()
        .leading(peers)
}

/// Three agents whose hook waits until its machine may go.
fn begin<'a>(place: &'a AgentNetwork, peers: &str) -> RunningAgents<'a> {
    let world = place.prepare(&ALL.map(|name| (name, gated(peers))));
    world.agents().for_each(|agent| {
        agent.script("gate", GATE);
        agent.start();
    });
    world.is_settled();
    world
}

/// promise: A5
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn three_machines_get_ready_and_one_approval_is_given() {
    let place = AgentNetwork::of(crate::program(), &ALL);
    let world = begin(&place, "");
    let reboot = world.announce(&["host", "reboot", "h1"]);
    world.agents().for_each(|agent| {
        agent.has_noted("preparing");
        agent.is_answered_ready("503");
    });
    for name in ["db_0", "db_2"] {
        world.agent(name).touch("go");
        world.agent(name).has_noted("ready");
    }
    // One of three is not ready.
    assert_eq!((world.status(&reboot).as_str(), world.start_requests()), ("Scheduled", 0));
    world.agent("db_1").touch("go");
    world.is(&reboot, "Started");
    assert_eq!(world.approvers(&reboot), ["machine db/db_0"], "the first that is named");
    world.agents().for_each(|agent| agent.has_run("started note-started Reboot"));
    world.advance("1m");
    world.is(&reboot, "gone");
    for agent in world.agents() {
        agent.has_run("undo drain Reboot");
        agent.is_answered_ready("200");
        agent.did_everything_once("Reboot");
    }
    assert_eq!(world.start_requests(), 1, "one approval, and nobody else has even tried");
    assert_eq!(world.approvers(&reboot).len(), 1);
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn without_a_dead_peer_nobody_approves() {
    let place = AgentNetwork::of(crate::program(), &ALL);
    let world = begin(&place, "silence = \"wait\"\nsilent_after = \"2s\"");
    world.agent("db_2").kill();
    let reboot = world.announce(&["host", "reboot", "h1"]);
    for name in ["db_0", "db_1"] {
        world.agent(name).touch("go");
        world.agent(name).has_noted("ready");
    }
    world.agent("db_0").has_said("cannot get the status of a peer");
    // Peers are asked once a second: whoever would go on without the silent one would have done it by then.
    let asked = world.agent("db_0").peer_rounds();
    forewarn_testkit::wait_until("peers are asked again and again", || {
        (world.agent("db_0").peer_rounds() >= asked + 5).then_some(())
    });
    assert_eq!((world.status(&reboot).as_str(), world.start_requests()), ("Scheduled", 0));
    // It starts when its notice is over.
    world.advance("15m");
    world.agent("db_0").has_run("started note-started Reboot");
    assert!(world.approvers(&reboot).is_empty());
    world.advance("1m");
    for name in ["db_0", "db_1"] {
        world.agent(name).has_run("undo drain Reboot");
    }
}

/// promise: A5
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_dead_leader_is_replaced_and_done_without() {
    let place = AgentNetwork::of(crate::program(), &ALL);
    let world = begin(&place, "silence = \"go-on\"\nsilent_after = \"10s\"");
    let reboot = world.announce(&["host", "reboot", "h1"]);
    world.agent("db_0").has_noted("preparing");
    world.agent("db_0").kill();
    for name in ["db_1", "db_2"] {
        world.agent(name).touch("go");
    }
    world.is(&reboot, "Started");
    assert_eq!(world.approvers(&reboot), ["machine db/db_1"], "the first that is named and alive");
    let approving = world.agent("db_1").has_noted("approving");
    assert_eq!(approving["without"], serde_json::json!(["db_0"]));
    assert_eq!(world.start_requests(), 1);
}

/// Opens 400 connections to an agent and never finishes a request; opens each again when the agent closes it.
const STRANGER: &str = "
import selectors, socket, sys, time
poll = selectors.DefaultSelector()
def open_one():
    stream = socket.socket()
    stream.setblocking(False)
    stream.connect_ex((sys.argv[1], 9911))
    poll.register(stream, selectors.EVENT_WRITE)
for _ in range(400):
    open_one()
print('open', flush=True)
while True:
    for key, events in poll.select():
        try:
            if events & selectors.EVENT_WRITE:
                key.fileobj.send(b'GET /peers/v1/status HTTP/1.1\\r\\nHost: h\\r\\nX: ')
                poll.modify(key.fileobj, selectors.EVENT_READ)
            elif not key.fileobj.recv(4096):
                raise OSError
        except OSError:
            poll.unregister(key.fileobj)
            key.fileobj.close()
            # 400 connections a second are enough.
            time.sleep(0.0025)
            open_one()
";

/// A program that ends with the test.
struct Stranger(Child);

impl Stranger {
    /// Floods a machine from that namespace, and waits until all connections are under way.
    fn begin(from: &Namespace, target: &str) -> Self {
        let mut command = from.command("python3");
        let child = command.args(["-c", STRANGER, target]).stdout(Stdio::piped()).spawn().unwrap();
        let mut stranger = Self(child);
        let mut line = String::new();
        BufReader::new(stranger.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "open\n");
        stranger
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// promise: A5
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_flood_of_connections_does_not_make_a_peer_silent() {
    let place = AgentNetwork::of(crate::program(), &ALL);
    let world = begin(&place, "silence = \"go-on\"\nsilent_after = \"10s\"");
    // From an address that no peer has, and from the address of a peer.
    let target = place.address("db_1");
    let strangers =
        [place.network().host(), world.agent("db_2").namespace()].map(|from| Stranger::begin(from, &target));
    let reboot = world.announce(&["host", "reboot", "h1"]);
    for name in ["db_0", "db_2"] {
        world.agent(name).touch("go");
        world.agent(name).has_noted("ready");
    }
    // db_1 drains for longer than a silent peer is waited for.
    let asked = world.agent("db_0").peer_rounds();
    forewarn_testkit::wait_until("peers are asked again and again", || {
        assert_eq!(world.start_requests(), 0, "approved while a peer drains");
        (world.agent("db_0").peer_rounds() >= asked + 14).then_some(())
    });
    assert_eq!(world.status(&reboot), "Scheduled");
    world.agent("db_1").touch("go");
    world.is(&reboot, "Started");
    assert_eq!(world.approvers(&reboot), ["machine db/db_0"]);
    let approving = world.agent("db_0").has_noted("approving");
    assert_eq!(approving["without"], serde_json::json!([]));
    drop(strangers);
}

/// promise: A5
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn one_machine_is_drained_at_once() {
    let place = AgentNetwork::of(crate::program(), &["web_0", "web_1"]);
    let settings = AgentSettings::draining().table("approval", "policy = \"never\"").table(
        "peers",
        "PEERS\nkey_file = \"DIR/key\"\nat_once = 1\nreserve = \"1s\"\nsilent_after = \"60s\"",
    );
    let world = place.begin(&settings);
    let reboots = ["web_0", "web_1"].map(|name| world.announce(&["vm", "restart", name]));
    // Whoever is first, the other waits.
    let drained = |name: &str| !world.agent(name).did().is_empty();
    let (first, second) = forewarn_testkit::wait_until("one of them is drained", || {
        match (drained("web_0"), drained("web_1")) {
            (true, false) => Some((0, 1)),
            (false, true) => Some((1, 0)),
            (true, true) => panic!("both are drained"),
            (false, false) => None,
        }
    });
    let name = |number: usize| ["web_0", "web_1"][number];
    world.agent(name(second)).has_noted("waits");
    world.agent(name(second)).is_answered_ready("200");
    world.run(&["event", "start", &reboots[first]]);
    world.agent(name(first)).has_run("started note-started Reboot");
    world.advance("1m");
    world.is(&reboots[first], "gone");
    world.agent(name(first)).has_run("undo drain Reboot");
    world.agent(name(second)).has_run("scheduled drain Reboot");
    assert_eq!(world.status(&reboots[second]), "Scheduled");
}
