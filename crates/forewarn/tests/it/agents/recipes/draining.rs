//! Connection draining: what is new is refused, what is there goes on and has time, what is left is cut.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::{file, script, settings};
use forewarn_testkit::agents::Beside;
use forewarn_testkit::agents::{AgentNetwork, RunningAgents};
use forewarn_testkit::network::Namespace;
use forewarn_testkit::wait_until;

/// Somebody who keeps one connection.
struct Caller {
    child: Child,
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Caller {
    /// One whose connection is there, and answered.
    fn connect(from: &Namespace, at: &str) -> Self {
        let mut command = from.command("python3");
        command.args([&script("caller.py"), at, "8080"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, said) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut caller = Self { child, orders, said: BufReader::new(said).lines() };
        assert_eq!(caller.told("ask"), "answered");
        caller
    }

    /// What came of an order.
    fn told(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.said.next().expect("it says what came of it").unwrap()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A service on `solo`, with an agent beside it, and somebody else who may call.
struct Service<'a> {
    at: String,
    caller: &'a Namespace,
    _beside: Beside,
}

impl<'a> Service<'a> {
    /// One that answers, and whose agent watches.
    fn open(place: &'a AgentNetwork, world: &RunningAgents<'_>) -> Self {
        let agent = world.agent("solo");
        agent.script("lib/drain", &file("connection-draining", "drain"));
        let beside = Beside::new();
        beside.run(agent.namespace(), "python3", &[&script("server.py"), "8080", "greeter"]);
        let service = Self { at: place.address("solo"), caller: place.network().machine(1), _beside: beside };
        wait_until("the service answers", || service.answers().then_some(()));
        agent.start();
        world.is_settled();
        service
    }

    /// Whether it takes a new connection, and greets; whoever is refused hears nothing.
    fn answers(&self) -> bool {
        let line = format!("curl --silent --max-time 5 http://{}:8080/ || true", self.at);
        let said = self.caller.shell(&line);
        assert!(said.is_empty() || said == "greeter", "{said}");
        !said.is_empty()
    }

    fn connect(&self) -> Caller {
        Caller::connect(self.caller, &self.at)
    }
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn new_connections_are_refused_and_what_is_left_is_cut_at_the_deadline() {
    let place = AgentNetwork::of(crate::program(), &["solo", "web_0"]);
    // Less time than usual: the caller here does not go by itself.
    let draining = settings("connection-draining").changed("limit = \"5m\"", "limit = \"20s\"");
    let world = place.prepare(&[("solo", draining)]);
    let service = Service::open(&place, &world);
    let agent = world.agent("solo");
    let mut staying = service.connect();
    let reboot = world.announce(&["vm", "restart", "solo"]);
    wait_until("new connections are refused", || (!service.answers()).then_some(()));
    assert_eq!(staying.told("ask"), "answered", "the one that is there goes on");
    assert_eq!(world.status(&reboot), "Scheduled", "and has time");
    assert_eq!(staying.told("stay"), "cut");
    world.is(&reboot, "Started");
    assert!(!service.answers());
    world.advance("1m");
    wait_until("new connections are taken again", || service.answers().then_some(()));
    assert!(agent.log().contains("connections cut: 1"), "what the hook says is in the log");
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn it_takes_as_long_as_the_last_connection_does() {
    let place = AgentNetwork::of(crate::program(), &["solo", "web_0"]);
    // More time than a test has.
    let world = place.prepare(&[("solo", settings("connection-draining"))]);
    let service = Service::open(&place, &world);
    let agent = world.agent("solo");
    let mut callers = [service.connect(), service.connect()];
    let reboot = world.announce(&["vm", "restart", "solo"]);
    wait_until("new connections are refused", || (!service.answers()).then_some(()));
    assert_eq!(callers[0].told("leave"), "left");
    assert_eq!(callers[1].told("ask"), "answered");
    assert_eq!(world.status(&reboot), "Scheduled", "one of two is there");
    assert_eq!(callers[1].told("leave"), "left");
    world.is(&reboot, "Started");
    assert!(!agent.log().contains("connections cut"), "they have ended by themselves");
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn nobody_waits_for_connections_that_are_not_there() {
    let place = AgentNetwork::of(crate::program(), &["solo"]);
    let world = place.prepare(&[("solo", settings("connection-draining"))]);
    let agent = world.agent("solo");
    agent.script("lib/drain", &file("connection-draining", "drain"));
    agent.start();
    world.is_settled();
    world.restart("solo");
    world.advance("1m");
    agent.is_answered_ready("200");
    assert_eq!(agent.namespace().shell("nft list tables"), "");
}
