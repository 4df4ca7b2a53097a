//! Leaving a load balancer: a real HAProxy asks the ready endpoint, and no request is lost.

use std::fs;

use super::{file, script, settings};
use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::Beside;
use forewarn_testkit::wait_until;

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_balancer_sends_nothing_to_a_drained_machine_and_comes_back() {
    // HAProxy runs in a machine without an agent.
    let place = AgentNetwork::of(crate::program(), &["web_0", "web_1", "solo"]);
    // More time than usual, so that it can be seen that it has left before it is approved.
    let leaving = settings("leaving-a-load-balancer").changed("wait = \"5s\"", "wait = \"20s\"");
    let world = place.begin_each(&[("web_0", leaving.clone()), ("web_1", leaving)]);
    let beside = Beside::new();
    for agent in world.agents() {
        beside.run(agent.namespace(), "python3", &[&script("server.py"), "8080", &agent.name]);
    }
    let configuration = file("leaving-a-load-balancer", "haproxy.cfg")
        .replace("10.0.0.4", &place.address("web_0"))
        .replace("10.0.0.5", &place.address("web_1"));
    let written = place.files().join("haproxy.cfg");
    fs::write(&written, configuration).unwrap();
    let balancer = place.network().machine(2);
    let haproxy = "/usr/sbin/haproxy";
    beside.run(balancer, haproxy, &["-db", "-f", written.to_str().unwrap()]);
    let ask =
        || balancer.shell("curl --silent --max-time 5 --write-out ' %{http_code}' http://127.0.0.1/ || true");
    let who = || -> Vec<String> {
        let mut names: Vec<_> = (0..6).map(|_| ask()).collect();
        names.sort();
        names.dedup();
        names
    };
    wait_until("both answer", || (who() == ["web_0 200", "web_1 200"]).then_some(()));
    let reboot = world.announce(&["vm", "restart", "web_0"]);
    let all_answer = || -> Vec<String> {
        let names = who();
        assert!(names.iter().all(|name| name.ends_with(" 200")), "a request was lost: {names:?}");
        names
    };
    // All are answered while it leaves, and from then on by the other.
    wait_until("one has left", || (all_answer() == ["web_1 200"]).then_some(()));
    assert_eq!(world.status(&reboot), "Scheduled", "it has left before it is approved");
    world.is(&reboot, "Started");
    world.advance("1m");
    // And while it comes back.
    wait_until("it is back", || (all_answer() == ["web_0 200", "web_1 200"]).then_some(()));
}
