//! `forewarn realm dev`: a realm on this computer, with real processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, RunningCommand, TestDir, clean_command, programs, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A realm that prints JSON, and everything that it has printed.
struct RunningRealm {
    running: RunningCommand,
    /// Its temporary directory is in here.
    place: TestDir,
    seen: Vec<Value>,
}

impl RunningRealm {
    /// None without etcd.
    fn start(words: &[&str]) -> Option<Self> {
        programs::find_or_skip("etcd")?;
        let place = TestDir::new();
        let running = RunningCommand::start(command(&place).args(["--json"]).args(words));
        let mut realm = Self { running, place, seen: Vec::new() };
        realm.wait("the realm is ready", |event| event["kind"] == "ready");
        Some(realm)
    }

    /// Waits for an event that is not among those seen so far.
    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.running.line();
            let event: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("{what}: no JSON: {line}"));
            self.seen.push(event.clone());
            if wanted(&event) {
                return event;
            }
        }
    }

    /// The first event after a number of events, which may have been seen already.
    fn find(&mut self, what: &str, after: usize, wanted: impl Fn(&Value) -> bool) -> Value {
        match self.seen.iter().skip(after).find(|event| wanted(event)).cloned() {
            Some(event) => event,
            None => self.wait(what, wanted),
        }
    }

    /// The server that owns the default cluster, as the realm has printed it.
    fn owner(&self) -> (String, i32) {
        let mut owners =
            self.seen.iter().filter(|event| event["kind"] == "owner" && event["cluster"] == "default");
        let owner = owners.next_back().expect("an owner");
        (text(&owner["name"]), pid(&owner["pid"]))
    }

    /// The ids of all processes that were running when the realm was ready.
    fn processes(&self) -> BTreeSet<i32> {
        let ready = self.ready();
        let lists = [&ready["servers"], &ready["etcd"]];
        lists.into_iter().flat_map(|list| list.as_array().unwrap()).map(|one| pid(&one["pid"])).collect()
    }

    fn ready(&self) -> &Value {
        self.seen.iter().find(|event| event["kind"] == "ready").expect("it was ready")
    }

    /// Ends it as Ctrl-C does: nothing is left.
    fn end(self) {
        let started =
            self.seen.iter().filter(|event| event["kind"] == "started").map(|event| pid(&event["pid"]));
        let processes: BTreeSet<_> = self.processes().into_iter().chain(started).collect();
        let directory = text(&self.ready()["directory"]);
        assert!(Path::new(&directory).starts_with(self.place.root()) && Path::new(&directory).exists());
        let CommandResult { code, err, .. } = self.running.interrupted();
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(!Path::new(&directory).exists(), "the directory is left");
        for process in processes {
            assert!(!Path::new(&format!("/proc/{process}")).exists(), "process {process} is left");
        }
    }
}

fn command(place: &TestDir) -> Command {
    let mut command = clean_command(crate::program());
    command.env("TMPDIR", place.root()).args(["realm", "dev"]);
    command
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

fn pid(value: &Value) -> i32 {
    value.as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_else(|| panic!("a process: {value}"))
}

fn kill(process: i32) {
    kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).expect("it runs");
}

/// promise: X2
#[test]
fn a_killed_owner_is_replaced_and_nothing_is_left_at_the_end() {
    let Some(mut realm) = RunningRealm::start(&["--speed", "300"]) else { return };
    assert_eq!(realm.processes().len(), 6, "three members and three servers");
    let (owner, process) = realm.owner();
    kill(process);
    let ended = realm.wait("the end is noticed", |event| event["kind"] == "ended");
    assert_eq!(
        (text(&ended["name"]), text(&ended["end"])),
        (owner.clone(), "was ended by signal 9".to_owned())
    );
    // The new owner and the end of the gap are observed separately, in any order.
    let (after, is_default) = (realm.seen.len(), |event: &Value| event["cluster"] == "default");
    let next = realm.find("another owner", after, |event| event["kind"] == "owner" && is_default(event));
    assert_eq!((text(&next["before"]), next["name"] == owner), (owner, false));
    let gap = realm.find("writes go on", after, |event| event["kind"] == "gap" && is_default(event));
    assert!(gap["gap_seconds"].as_f64().is_some_and(|gap| gap > 0.0), "{gap}");
    let servers = realm.ready()["servers"].as_array().unwrap().clone();
    let other = servers.iter().find(|server| pid(&server["pid"]) != process).unwrap();
    let api = text(&other["api"]);
    let run = |words: &[&str]| {
        let mut command = clean_command(crate::program());
        run_with_input(command.args(["--api", &api]).args(words), "")
    };
    // A notice of 15 minutes takes three seconds.
    let restart = run(&["vm", "restart", "solo"]);
    assert_eq!(restart.code, Some(0), "{restart:?}");
    wait_until("the restart is over", || run(&["event", "ls", "-o", "name"]).out.is_empty().then_some(()));
    let clock: Value = serde_json::from_str(&run(&["clock", "show", "--json"]).out).unwrap();
    assert_eq!((text(&clock["kind"]), clock["speed"].as_u64()), ("accelerated".to_owned(), Some(300)));
    let advance = run(&["clock", "advance", "1m"]);
    assert_eq!(advance.code, Some(1), "{advance:?}");
    assert!(realm.seen.iter().all(|event| event["kind"] != "started"), "nothing starts again by itself");
    realm.end();
}

#[test]
fn a_killed_member_of_etcd_comes_back_if_that_is_wanted() {
    let Some(mut realm) = RunningRealm::start(&["--servers", "1", "--restart", "1s"]) else { return };
    let mut leaders = realm.seen.iter().filter(|event| event["kind"] == "leader");
    let leader = text(&leaders.next_back().expect("a leader")["name"]);
    let members = realm.ready()["etcd"].as_array().unwrap().clone();
    let member = members.iter().find(|member| text(&member["name"]) == leader).unwrap();
    kill(pid(&member["pid"]));
    realm.wait("another leader", |event| {
        event["kind"] == "leader" && event["name"] != leader && !event["name"].is_null()
    });
    if !realm.seen.iter().any(|event| event["kind"] == "started") {
        realm.wait("the member starts again", |event| event["kind"] == "started");
    }
    realm.end();
}

#[test]
fn without_etcd_it_says_what_to_install() {
    let place = TestDir::new();
    let result = run_with_input(command(&place).env("PATH", place.root()), "");
    assert_eq!(result.code, Some(1));
    assert!(
        result.err.starts_with("forewarn: etcd is not installed\n  hint: ")
            && result.err.contains("etcd-server")
    );
}

#[test]
fn a_version_of_etcd_that_has_lost_data_is_refused() {
    let place = TestDir::new();
    let etcd = place.script("etcd", "echo etcd Version: 3.5.3");
    let result = run_with_input(command(&place).args(["--etcd", &etcd]), "");
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("is etcd 3.5.3, which is known to lose data"), "{}", result.err);
    assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 1, "there is nothing but the program");
}
