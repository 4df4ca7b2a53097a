//! Steps on hosts, as a driver program sees them: the step lies between the orders to the machines of its host, and each
//! order takes effect once, wherever the server dies.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::durable::site::Site;
use forewarn_testkit::{TestServer, wait_until};

const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }]
vm = [
    { name = "a", host = "h1" }, { name = "b", host = "h1" },
    { name = "c", host = "h2" }, { name = "d", host = "h2" },
]
"#;

/// Does what is ordered, once for each action, and waits where the test wants it to. `answer-VERB` is its response.
const LOGS: &str = r#"order=$(cat)
case $order in *'}') ;; *) exit 1 ;; esac
cd "$HANDS" || exit 1
member() {
    case $order in *"\"$1\":\""*) rest=${order#*\"$1\":\"}; echo "${rest%%\"*}" ;; esac
}
action=$(member action) verb=$(member verb) machine=$(member machine) host=$(member host)
wait_at() {
    [ -e "hold-$verb-$1" ] || return 0
    echo "$action" >>"at-$verb-$1"
    while [ -e "hold-$verb-$1" ]; do sleep 0.01; done
}
wait_at before
mkdir "done-$action" 2>/dev/null && echo "$verb ${machine:-$host}" >>effects && echo "$order" >>orders
wait_at after
if [ -e "answer-$verb" ]; then cat "answer-$verb"; else echo '{"result":"done"}'; fi
"#;

impl Site {
    pub(super) fn two_hosts() -> Self {
        let site = Self::with_fleet(FLEET, "a");
        site.bring_program(LOGS);
        site
    }

    pub(super) fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The effects on a host and its machines, in the order in which they happened.
    fn effects_on(&self, objects: &[&str]) -> Vec<String> {
        let is_meant = |line: &String| objects.iter().any(|name| line.ends_with(&format!(" {name}")));
        self.effects().into_iter().filter(is_meant).collect()
    }

    fn is_at(&self, gap: &str) -> Option<()> {
        fs::exists(self.file(&format!("at-{gap}"))).unwrap().then_some(())
    }

    /// The order to a host, as the program got it.
    pub(super) fn order(&self, verb: &str) -> Value {
        let orders = fs::read_to_string(self.file("orders")).unwrap();
        let orders = orders.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        orders.into_iter().find(|order| order["verb"] == verb).expect("the order")
    }
}

pub(super) fn wait_for_end(server: &TestServer, hosts: &[&str]) {
    for host in hosts {
        wait_until("the end of the work", || {
            server.json(&["host", "show", host])["work"].is_null().then_some(())
        });
    }
}

/// Sorts the orders of each phase: machines of a host are ordered at the same time.
fn phases(mut effects: Vec<String>) -> Vec<String> {
    let phase = |line: &String| match line.split_once(' ').map(|(verb, _)| verb) {
        Some("pause" | "stop") => 0,
        Some("update_host" | "reboot_host") => 1,
        _ => 2,
    };
    assert!(effects.is_sorted_by_key(phase), "{effects:?}");
    effects.sort_by_key(|line| (phase(line), line.clone()));
    effects
}

/// promise: E1
#[test]
fn a_host_is_updated_strictly_between_the_pause_and_the_resumption_of_its_machines() {
    let site = Site::two_hosts();
    let server = site.start();
    server.run(&["host", "update", "h1", "h2", "--work", "kernel 6.12.9", "--duration", "45s"]);
    wait_for_end(&server, &["h1", "h2"]);
    let of_h1 = ["pause a", "pause b", "update_host h1", "resume a", "resume b"];
    assert_eq!(phases(site.effects_on(&["h1", "a", "b"])), of_h1);
    let of_h2 = ["pause c", "pause d", "update_host h2", "resume c", "resume d"];
    assert_eq!(phases(site.effects_on(&["h2", "c", "d"])), of_h2);
    let mut order = site.order("update_host");
    assert_eq!(order["action"].as_str().unwrap().len(), 32);
    order.as_object_mut().unwrap().remove("action");
    let host = order["host"].clone();
    let expected = serde_json::json!({
        "verb": "update_host", "host": host, "cause": "update", "work": "kernel 6.12.9", "seconds": 45,
    });
    assert_eq!(order, expected);
    assert!(site.order("pause").get("seconds").is_none(), "it lasts until it is resumed");
}

/// promise: E1
#[test]
fn a_host_is_restarted_strictly_between_the_stop_and_the_start_of_its_machines() {
    let site = Site::two_hosts();
    let server = site.start();
    server.run(&["host", "reboot", "h1"]);
    wait_for_end(&server, &["h1"]);
    let expected = ["stop a", "stop b", "reboot_host h1", "start a", "start b"];
    assert_eq!(phases(site.effects()), expected);
    assert_eq!(server.json(&["vm", "show", "a"])["boots"], 2);
    assert_eq!(server.json(&["vm", "show", "c"])["boots"], 1);
}

/// promise: E1
#[test]
fn without_work_on_the_host_machines_are_paused_for_some_seconds() {
    let site = Site::two_hosts();
    let server = site.start();
    server.run(&["host", "update", "h1", "--no-work"]);
    wait_for_end(&server, &["h1"]);
    assert_eq!(phases(site.effects()), ["pause a", "pause b"]);
    assert_eq!(site.order("pause")["seconds"], 9);
}

/// promise: R2
#[test]
fn machines_return_after_a_step_that_failed() {
    let site = Site::two_hosts();
    fs::write(site.file("answer-update_host"), r#"{"result":"failed","message":"no kernel"}"#).unwrap();
    let server = site.start();
    let output = server.try_run(&["rollout", "start", "h1", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("\n  h1: no kernel\n"), "{printed}");
    assert_eq!(phases(site.effects()), ["pause a", "pause b", "update_host h1", "resume a", "resume b"]);
}

/// Work on two hosts of two machines each, with a kill before and after each order. The log of the driver program has each
/// order once, and the step of a host strictly between those of its machines.
fn kill_at_every_gap(work: &str, [aside, step, back]: [&str; 3]) -> (Site, TestServer) {
    let site = Site::two_hosts();
    let gaps: Vec<_> = [aside, step, back]
        .into_iter()
        .flat_map(|verb| [format!("{verb}-before"), format!("{verb}-after")])
        .collect();
    for gap in &gaps {
        File::create(site.file(&format!("hold-{gap}"))).unwrap();
    }
    let mut server = site.start();
    server.run(&["host", work, "h1", "h2"]);
    for gap in &gaps {
        wait_until(gap, || site.is_at(gap));
        server.kill();
        server = site.start();
        fs::remove_file(site.file(&format!("hold-{gap}"))).unwrap();
    }
    wait_for_end(&server, &["h1", "h2"]);
    for (host, [one, other]) in [("h1", ["a", "b"]), ("h2", ["c", "d"])] {
        let expected = [(aside, one), (aside, other), (step, host), (back, one), (back, other)];
        let expected = expected.map(|(verb, object)| format!("{verb} {object}"));
        assert_eq!(phases(site.effects_on(&[host, one, other])), expected);
    }
    assert_eq!(site.effects().len(), 10);
    (site, server)
}

/// promise: E1
/// promise: D2
#[test]
fn killed_at_every_gap_of_an_update_each_order_takes_effect_once() {
    let (_site, server) = kill_at_every_gap("update", ["pause", "update_host", "resume"]);
    assert_eq!(server.json(&["vm", "show", "a"])["boots"], 1);
}

/// promise: E1
/// promise: D2
#[test]
fn killed_at_every_gap_of_a_restart_each_order_takes_effect_once() {
    let (_site, server) = kill_at_every_gap("reboot", ["stop", "reboot_host", "start"]);
    for machine in ["a", "b", "c", "d"] {
        assert_eq!(server.json(&["vm", "show", machine])["boots"], 2, "{machine}");
    }
}

/// Rounds of the next test; `FOREWARN_STEP_ROUNDS` sets another number.
const ROUNDS: u64 = 4;

/// promise: D2
#[test]
fn killed_at_any_moment_each_order_takes_effect_once() {
    let site = Site::two_hosts();
    let rounds = std::env::var("FOREWARN_STEP_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut server = site.start();
    for round in 1..=rounds {
        // Updates and restarts of both hosts, in turn.
        let (work, [aside, step, back]) = match round % 2 {
            0 => ("reboot", ["stop", "reboot_host", "start"]),
            _ => ("update", ["pause", "update_host", "resume"]),
        };
        server.run(&["host", work, "h1", "h2"]);
        // Another moment in each round, over the whole length of the work.
        let until = Instant::now() + Duration::from_millis(round * 37 % 400);
        wait_until("the moment", || (Instant::now() >= until).then_some(()));
        server.kill();
        server = site.start();
        wait_for_end(&server, &["h1", "h2"]);
        let effects = site.effects();
        assert_eq!(effects.len() as u64, 10 * round, "round {round}: {effects:?}");
        let last = &effects[effects.len() - 10..];
        for (host, [one, other]) in [("h1", ["a", "b"]), ("h2", ["c", "d"])] {
            let is_meant =
                |line: &&String| [host, one, other].iter().any(|name| line.ends_with(&format!(" {name}")));
            let expected = [(aside, one), (aside, other), (step, host), (back, one), (back, other)];
            let expected = expected.map(|(verb, object)| format!("{verb} {object}"));
            assert_eq!(phases(last.iter().filter(is_meant).cloned().collect()), expected, "round {round}");
        }
    }
}

const UPDATED: [&str; 5] = ["pause a", "pause b", "update_host h1", "resume a", "resume b"];

/// promise: R2
#[test]
fn an_order_that_must_not_be_repeated_waits_for_an_operator_also_over_a_kill() {
    let site = Site::two_hosts();
    let answer = r#"{"result":"unknown","message":"was it reset?","repeat":false}"#;
    fs::write(site.file("answer-update_host"), answer).unwrap();
    let server = site.start();
    server.run(&["host", "update", "h1"]);
    let waits = |server: &TestServer| {
        let work = server.json(&["host", "show", "h1"])["work"].as_str().unwrap_or_default().to_owned();
        work.contains("waits for an operator").then_some(())
    };
    wait_until("the order waits", || waits(&server));
    let entry = &server.json(&["audit", "ls", "--kind", "suspended"])["items"][0];
    assert_eq!(entry["reason"], "was it reset?", "{entry}");
    server.kill();
    fs::remove_file(site.file("orders")).unwrap();
    let server = site.start();
    assert!(waits(&server).is_some(), "it still waits");
    assert_eq!(site.effects().len(), 3, "the machines are aside, and stay there");
    fs::remove_file(site.file("answer-update_host")).unwrap();
    server.run(&["host", "retry", "h1"]);
    wait_for_end(&server, &["h1"]);
    assert_eq!(phases(site.effects()), UPDATED);
    assert_eq!(server.json(&["host", "show", "h1"])["attention"], Value::Null);
}

/// promise: R2
#[test]
fn a_step_of_unknown_result_is_repeated_until_it_is_given_up() {
    let site = Site::two_hosts();
    fs::write(site.file("answer-update_host"), r#"{"result":"unknown","message":"no answer"}"#).unwrap();
    let server = site.start();
    server.run(&["host", "update", "h1"]);
    wait_until("it is repeated", || {
        let entry = server.json(&["host", "show", "h1"]);
        (entry["step_since"].is_string() && site.effects().len() == 3).then_some(())
    });
    server.run(&["host", "give-up", "h1"]);
    wait_for_end(&server, &["h1"]);
    assert_eq!(phases(site.effects()), UPDATED);
    let host = server.json(&["host", "show", "h1"]);
    assert_eq!((&host["attention"], &host["health"]), (&"given up by an operator".into(), &"healthy".into()));
    let refused = server.try_run(&["host", "update", "h1"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("needs attention"));
    server.run(&["host", "clear", "h1"]);
    assert_eq!(server.json(&["host", "show", "h1"])["attention"], Value::Null);
}

/// promise: R2
#[test]
fn a_person_works_on_a_host_and_reports_the_end() {
    let site = Site::two_hosts();
    let settings =
        site.read("config.toml").replace("kind = 'program',", "kind = 'program', host_work = 'manual',");
    site.write("config.toml", &settings);
    let server = site.start();
    server.run(&["host", "update", "h1", "--work", "kernel 6.12.9"]);
    let is_ready = |server: &TestServer| {
        let host = server.json(&["host", "show", "h1"]);
        (host["manual"] == true && host["step_since"].is_string()).then_some(())
    };
    wait_until("it is ready", || is_ready(&server));
    assert!(server.run(&["host", "ls"]).contains("ready for work since "));
    server.kill();
    let server = site.start();
    assert!(is_ready(&server).is_some(), "it never ends by itself");
    assert_eq!(phases(site.effects()), ["pause a", "pause b"]);
    server.run(&["host", "done", "h1"]);
    wait_for_end(&server, &["h1"]);
    assert_eq!(phases(site.effects()), ["pause a", "pause b", "resume a", "resume b"]);
    server.run(&["host", "update", "h2"]);
    wait_until("h2 is ready", || server.json(&["host", "show", "h2"])["manual"].as_bool());
    server.run(&["host", "done", "h2", "--failed", "does not boot"]);
    wait_for_end(&server, &["h2"]);
    assert_eq!(server.json(&["host", "show", "h2"])["attention"], "does not boot");
}

/// promise: R2
#[test]
fn a_command_works_on_hosts() {
    let site = Site::two_hosts();
    site.script(
        "work",
        "cd \"$HANDS\" && echo \"$@\" >>worked && exit \"$(cat exit 2>/dev/null || echo 0)\"\n",
    );
    let command =
        format!("host_work = ['{}', '{{verb}}', '{{host}}', '{{work}}'],", site.file("work").display());
    let settings =
        site.read("config.toml").replace("kind = 'program',", &format!("kind = 'program', {command}"));
    site.write("config.toml", &settings);
    let server = site.start();
    server.run(&["host", "reboot", "h1", "--work", "kernel 6.12.9"]);
    wait_for_end(&server, &["h1"]);
    assert_eq!(phases(site.effects()), ["stop a", "stop b", "start a", "start b"]);
    assert_eq!(fs::read_to_string(site.file("worked")).unwrap(), "reboot_host h1 kernel 6.12.9\n");
    fs::write(site.file("exit"), "10").unwrap();
    server.run(&["host", "update", "h2"]);
    wait_for_end(&server, &["h2"]);
    assert!(server.json(&["host", "show", "h2"])["attention"].is_string());
}
