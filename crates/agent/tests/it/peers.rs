//! Machines that are named together: one of them approves, once, when all of them are ready.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;

use crate::flood::Flood;
use crate::place::{Place, Running, tracing_hook};
use crate::played::{Played, Say, id, scheduled_for};
use forewarn_testkit::{RawConnection, request, wait_until};

/// A hook that waits for a file.
const WAITS: &str = "[[hook]]\nname = \"waits\"\n\
                     command = [\"/bin/sh\", \"-c\", \"while [ -d DIR ] && [ ! -e DIR/go ]; do sleep 0.05; done\"]\n";

const SILENT_SOON: &str = "silent_after = \"2s\"\n";

/// Addresses of loopback at which nobody else listens: they are known before anybody does, so they belong to this process and test.
fn addresses(test: u16) -> [SocketAddr; 2] {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 64 + high, middle, low);
    [test * 2, test * 2 + 1].map(|number| (ip, 9911 + number).into())
}

/// A place for an agent of that name, which knows where both are.
fn place(endpoint: &Played, name: &str, listen: SocketAddr, all: [SocketAddr; 2], more: &str) -> Place {
    let more = if more.contains("silent_after") { more.to_owned() } else { format!("{SILENT_SOON}{more}") };
    let [one, two] = all;
    let settings = format!(
        "name = \"{name}\"\nlisten = \"{listen}\"\n[approval]\npolicy = \"leader\"\n\
         [peers]\nlist = [\"web_0={one}\", \"web_1={two}\"]\nkey_file = \"DIR/key\"\n{more}"
    );
    let place = Place::new(&endpoint.url(), &settings);
    fs::write(place.path("key"), "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(place.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
    place
}

fn both() -> Say {
    Say::Events(vec![scheduled_for(1, "Reboot", 900, &["web_0", "web_1"])])
}

#[test]
fn the_first_approves_once_when_all_are_ready() {
    let endpoint = Played::start(both());
    let all = addresses(0);
    let places = [
        place(&endpoint, "web_0", all[0], all, &tracing_hook("quick", "scheduled")),
        place(&endpoint, "web_1", all[1], all, WAITS),
    ];
    let agents = places.each_ref().map(Place::start);
    agents[0].hear("ready for event");
    agents[1].hear("hook=\"waits\"");
    endpoint.wait_for_polls(4);
    assert_eq!(endpoint.approvals(), [""; 0], "one is not ready");
    fs::write(places[1].path("go"), "").unwrap();
    agents[0].hear("approval accepted");
    endpoint.wait_for_polls(4);
    assert_eq!(endpoint.approvals().len(), 1);
    assert!(endpoint.approvals()[0].contains(&id(1)));
    assert!(!agents[1].said().contains("approving event"), "{}", agents[1].said());
    assert!(agents.into_iter().map(Running::stop).all(|status| status.success()));
}

#[test]
fn a_peer_that_is_silent_is_waited_for_or_not() {
    let endpoint = Played::start(both());
    let all = addresses(1);
    let first = place(&endpoint, "web_1", all[1], all, "");
    let agent = first.start();
    agent.hear("ready for event");
    agent.hear("cannot get the status of a peer");
    endpoint.wait_for_polls(4);
    assert_eq!(endpoint.approvals(), [""; 0], "silence = \"wait\"");
    let shown = wait_until("the status names the silent machine", || {
        let shown = first.run(&["status"]).out;
        shown.contains("it waits for web_0 (silent: ").then_some(shown)
    });
    assert!(shown.to_lowercase().contains("connection refused"), "{shown}");
    let status: serde_json::Value = serde_json::from_str(&first.run(&["status", "--json"]).out).unwrap();
    let awaited = &status["events"][0]["not_approved"]["waits_for"][0];
    assert_eq!((&awaited["machine"], &awaited["state"]), (&"web_0".into(), &"silent".into()), "{status}");
    assert!(agent.stop().success());
    let second = place(&endpoint, "web_1", all[1], all, "silence = \"go-on\"\n");
    let agent = second.start();
    let said = agent.hear("approving event without silent machines");
    assert!(said.contains("without=\"web_0\""), "{said}");
    agent.hear("approval accepted");
}

/// promise: A5
#[test]
fn a_machine_asks_its_peers_before_it_takes_its_turn() {
    let endpoint = Played::start(Say::Events(vec![scheduled_for(1, "Reboot", 900, &["web_0"])]));
    let all = addresses(3);
    let place = place(&endpoint, "web_0", all[0], all, "at_once = 1\n");
    let agent = place.start();
    agent.hear("waiting for a turn: asking the peers");
    let said = agent.hear("preparing for event");
    assert!(!said.contains("other machines come first"), "{said}");
}

/// How often an agent has asked its peers.
fn peer_rounds(address: SocketAddr) -> u32 {
    let mut line = RawConnection::connect(address);
    line.send(&request("GET /metrics", ""));
    let metrics = line.answer().body;
    let count = metrics.lines().find_map(|line| line.strip_prefix("forewarn_agent_peer_rounds_total "));
    count.expect("the agent counts rounds").parse().expect("a number")
}

/// promise: A5
#[test]
fn a_peer_under_a_flood_of_connections_is_not_silent() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let (all, silent) = (addresses(2), "silence = \"go-on\"\nsilent_after = \"5s\"\n");
    let places = [
        place(&endpoint, "web_0", all[0], all, silent),
        place(&endpoint, "web_1", all[1], all, &format!("{silent}{WAITS}")),
    ];
    let agents = places.each_ref().map(Place::start);
    agents.iter().for_each(|agent| drop(agent.hear("Scheduled Events enabled")));
    // The first of them is also the address from which the other agent asks.
    let strangers = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 9, 9, 1), Ipv4Addr::new(127, 9, 9, 2)];
    let flood = Flood::start(all[1], &strangers, 134);
    endpoint.say(both());
    agents[0].hear("ready for event");
    agents[1].hear("hook=\"waits\"");
    let begun = peer_rounds(all[0]);
    // A round takes a second: a peer that says nothing is silent after five.
    wait_until("peers are asked again and again", || {
        assert_eq!(endpoint.approvals(), [""; 0], "approved while a peer drains");
        (peer_rounds(all[0]) >= begun + 9).then_some(())
    });
    fs::write(places[1].path("go"), "").unwrap();
    agents[0].hear("approving event: all machines are ready");
    agents[0].hear("approval accepted");
    drop(flood);
}

/// promise: A7
#[test]
fn what_is_drained_is_told_to_load_balancers_and_collectors() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(
        &endpoint.url(),
        &(String::from("[approval]\npolicy = \"never\"\n") + &tracing_hook("a", "undo")),
    );
    let agent = place.start();
    agent.hear("Scheduled Events enabled");
    let address: SocketAddr = agent.address().parse().unwrap();
    let ask = |path: &str| {
        let mut line = RawConnection::connect(address);
        line.send(&request(&format!("GET {path}"), ""));
        let answer = line.answer();
        (answer.status(), answer.body)
    };
    wait_until("it is ready", || (ask("/readyz").0 == 200).then_some(()));
    assert_eq!(ask("/healthz").0, 200);
    assert_eq!(ask("/ready").0, 200);
    endpoint.say(Say::Events(vec![scheduled_for(1, "Reboot", 900, &["web_0"])]));
    wait_until("it is drained", || (ask("/ready").0 == 503).then_some(()));
    let (_, metrics) = ask("/metrics");
    for line in [
        "forewarn_agent_drained 1",
        "forewarn_agent_events_total{type=\"Reboot\"} 1",
        "seconds_left{type=\"Reboot\"}",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    endpoint.say(Say::Events(Vec::new()));
    wait_until("it serves again", || (ask("/ready").0 == 200).then_some(()));
    place.expect(&["undo a 1"]);
}
