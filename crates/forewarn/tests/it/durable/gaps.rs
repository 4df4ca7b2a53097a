//! A server that dies on the way from a decision to its effect.
//!
//! ```text
//!   intent recorded ──1──▶ command sent ──2──▶ effect ──3──▶ answer ──4──▶ result recorded ──5──▶
//! ```
//!
//! Wherever it dies, each machine has one effect, and the event ends. The hands are a program (`hands`) that waits where a test
//! wants it to; for pretend machines, effect and recorded result are one.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::process::Signal;

use crate::durable::place::Place;
use crate::durable::site::{MACHINES, Site, document};
use forewarn_testkit::operator::{advance, machine};
use forewarn_testkit::{NEWEST, TestServer, approve, post, wait_until};

impl Site {
    /// Starts a server, and announces that both machines are restarted.
    fn announce(&self) -> (TestServer, String) {
        let server = self.start();
        document(&server);
        server.run(&["host", "reboot", "h1", "--no-work"]);
        let events = document(&server)["Events"].clone();
        let id = events[0]["EventId"].as_str().expect("an event").to_owned();
        (server, id)
    }

    /// The same, and it is approved.
    fn restart_both(&self) -> TestServer {
        let (server, id) = self.announce();
        assert_eq!(server.say(&post(NEWEST, &approve(&[&id]))).short(), (200, ""));
        server
    }

    fn hold(&self, place: &str) {
        File::create(self.file(&format!("hold-{place}"))).unwrap();
    }

    fn let_go(&self, place: &str) {
        fs::remove_file(self.file(&format!("hold-{place}"))).unwrap();
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the programs of both machines have written there.
    fn wait_for_both(&self, name: &str) {
        wait_until(name, || (self.lines(name).len() == MACHINES.len()).then_some(()));
    }

    /// Another server brings everything to its end, and each machine was restarted once.
    fn check(&self) {
        let server = self.start();
        wait_until("the event ends", || document(&server)["Events"].as_array()?.is_empty().then_some(()));
        assert_eq!(document(&server)["DocumentIncarnation"], 4, "it appeared, started and went once");
        let mut effects = self.lines("effects");
        effects.sort();
        effects.dedup();
        assert_eq!((effects.len(), self.lines("effects").len()), (2, 2), "{:?}", self.lines("effects"));
        for name in MACHINES {
            assert_eq!(server.json(&["vm", "show", name])["boots"], 2, "{name}");
        }
    }
}

/// promise: D2
#[test]
fn killed_before_the_command_is_sent_there_is_one_effect() {
    let site = Site::new();
    site.bring_hands();
    let (server, id) = site.announce();
    // Nobody is there whom the command could be sent to.
    site.take_hands();
    assert_eq!(server.say(&post(NEWEST, &approve(&[&id]))).short(), (200, ""));
    assert_eq!(document(&server)["Events"][0]["EventStatus"], "Started");
    server.kill();
    site.bring_hands();
    site.check();
}

/// promise: D2
#[test]
fn killed_before_the_effect_there_is_one_effect() {
    let site = Site::new();
    site.bring_hands();
    site.hold("before");
    let server = site.restart_both();
    site.wait_for_both("at-before");
    server.kill();
    // Programs of both servers go on: the command has been sent twice.
    site.let_go("before");
    site.check();
}

/// The processes that a process has started.
fn children_of(parent: u32) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_child = |process: &PathBuf| {
        let Ok(stat) = fs::read_to_string(process.join("stat")) else { return false };
        // The name of the program stands in parentheses; the state and the parent follow.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    processes.filter(is_child).collect()
}

/// promise: D5
#[test]
fn a_program_that_outlives_its_server_holds_none_of_its_files_and_another_server_starts() {
    let site = Site::new();
    site.bring_hands();
    site.hold("before");
    let server = site.restart_both();
    site.wait_for_both("at-before");
    let programs = children_of(server.id());
    assert_eq!(programs.len(), 2, "{programs:?}");
    for program in &programs {
        for handle in fs::read_dir(program.join("fd")).unwrap() {
            let file = fs::read_link(handle.unwrap().path()).unwrap();
            assert!(!file.starts_with(site.file("data")), "{} has {}", program.display(), file.display());
        }
    }
    server.kill();
    assert!(programs.iter().all(|program| program.exists()), "the programs run on");
    site.start().kill();
    site.let_go("before");
    site.check();
}

/// promise: D2
#[test]
fn killed_after_the_effect_there_is_one_effect() {
    let site = Site::new();
    site.bring_hands();
    site.hold("after");
    let server = site.restart_both();
    site.wait_for_both("at-after");
    assert_eq!(site.lines("effects").len(), 2);
    server.kill();
    site.let_go("after");
    site.check();
}

/// promise: D2
#[test]
fn killed_before_the_answer_is_recorded_there_is_one_effect() {
    let site = Site::new();
    site.bring_hands();
    site.hold("after");
    let server = site.restart_both();
    site.wait_for_both("at-after");
    // It is answered, and cannot read the answers.
    server.signal(Signal::STOP);
    site.let_go("after");
    site.wait_for_both("answered");
    server.kill();
    site.check();
}

/// promise: D2
#[test]
fn killed_when_all_is_recorded_nothing_happens_again() {
    let site = Site::new();
    site.bring_hands();
    let server = site.restart_both();
    wait_until("the event ends", || document(&server)["Events"].as_array()?.is_empty().then_some(()));
    server.kill();
    site.check();
    assert_eq!(site.lines("answered").len(), 2, "nothing was ordered a second time");
}

/// promise: D2
#[test]
fn pretend_machines_are_restarted_once_wherever_the_server_dies() {
    let place = Place::new();
    let mut server = place.start();
    server.enrol(&["vm-0"]);
    let id = server.restart("vm-0");
    assert_eq!(server.post("vm-0", &approve(&[&id])).status(), 200);
    // Decided; half done; done.
    for (span, status, boots) in
        [("1s", "Started", 1), ("20s", "Started", 1), ("30s", "gone", 2), ("1h", "gone", 2)]
    {
        server.kill();
        server = place.start();
        advance(&server, span);
        assert_eq!((server.status("vm-0").as_str(), span), (status, span));
        assert_eq!(machine(&server, "vm-0")["boots"], boots, "{span} later");
    }
    assert_eq!(server.document("vm-0")["DocumentIncarnation"], 4);
}
