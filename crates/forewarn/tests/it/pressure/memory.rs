//! Memory: what clients send without having authenticated does not exhaust it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pressure::attack::{INCOMPLETE, ask, hold, request};
use crate::pressure::place::Place;
use crate::program;
use forewarn_testkit::{NEWEST, TestServer, get};

/// Connections of an attack.
const MANY: usize = 512;

/// Bytes of the header that each of them sends.
const HEADER_BYTES: usize = 390_000;

/// Bytes by which the process may grow: what a listener's connections can hold in headers, twice over.
const GROWTH_MAX: u64 = 150 << 20;

/// The memory of the unit, in KiB.
const UNIT_KIB: &str = "1048576";

/// promise: S5
#[test]
fn huge_headers_do_not_exhaust_memory() {
    let place = Place::new();
    let server = place.start("");
    let token = place.token();
    let before = peak(server.id());
    let huge = format!("{INCOMPLETE}{}", "x".repeat(HEADER_BYTES));
    let _held = hold(server.api(), MANY, huge.as_bytes());
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    let growth = peak(server.id()) - before;
    assert!(growth < GROWTH_MAX, "it grew by {growth} bytes");
}

/// promise: S5
#[test]
fn a_server_with_the_memory_of_the_unit_survives_an_attack_and_answers_machines() {
    let place = Place::new();
    let config = place.settings("listen = '127.0.0.1:0'", "");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {UNIT_KIB} && exec \"$0\" \"$@\"")]).arg(program());
    command.args(["serve", "--config", &config]);
    let server = TestServer::spawn(crate::program(), command);
    let token = place.token();
    let huge = format!("{INCOMPLETE}{}", "x".repeat(HEADER_BYTES));
    let _operators = hold(server.api(), MANY, huge.as_bytes());
    let _machines = hold(server.metadata(), MANY, huge.as_bytes());
    assert_eq!(server.say(&get(NEWEST)).status(), 200);
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
}

/// The same in a control group, as systemd does it.
#[cfg(target_os = "linux")]
/// promise: S5
#[test]
#[ignore = "needs root and a control group that can be made; cargo xtask test runs it"]
fn a_server_in_a_control_group_survives_an_attack_and_answers_machines() {
    let place = Place::new();
    let Some(group) = ControlGroup::new() else {
        assert!(std::env::var_os("CI").is_none(), "no control group can be made here");
        return eprintln!("SKIPPED: no control group can be made here");
    };
    let config = place.settings("listen = '127.0.0.1:0'", "");
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&group.path).arg(program());
    command.args(["serve", "--config", &config]);
    let server = TestServer::spawn(crate::program(), command);
    let token = place.token();
    let huge = format!("{INCOMPLETE}{}", "x".repeat(HEADER_BYTES));
    let _operators = hold(server.api(), MANY, huge.as_bytes());
    let _machines = hold(server.metadata(), MANY, huge.as_bytes());
    assert_eq!(server.say(&get(NEWEST)).status(), 200);
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    assert_eq!(group.killed(), "oom_kill 0");
    drop(server);
}

/// A control group with the memory of the unit.
#[cfg(target_os = "linux")]
struct ControlGroup {
    path: String,
    /// The file that counts processes that were killed for want of memory.
    events: &'static str,
}

#[cfg(target_os = "linux")]
impl ControlGroup {
    /// Makes a group of version 2, or of version 1 where memory is controlled by that.
    fn new() -> Option<Self> {
        let name = format!("forewarn-test-{}", std::process::id());
        let versions = [
            ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup", "memory.max", "memory.events"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.oom_control",
            ),
        ];
        let (_, parent, limit, events) = versions.into_iter().find(|(mark, ..)| Path::new(mark).exists())?;
        let group = Self { path: format!("{parent}/{name}"), events };
        fs::create_dir(&group.path).ok()?;
        let limit = format!("{}/{limit}", group.path);
        (Path::new(&limit).exists() && fs::write(limit, "1G").is_ok()).then_some(group)
    }

    /// The line that counts the processes that were killed for want of memory.
    fn killed(&self) -> String {
        let text = fs::read_to_string(format!("{}/{}", self.path, self.events)).unwrap();
        text.lines().find(|line| line.starts_with("oom_kill ")).unwrap().to_owned()
    }
}

#[cfg(target_os = "linux")]
impl Drop for ControlGroup {
    fn drop(&mut self) {
        if fs::remove_dir(&self.path).is_err() {
            eprintln!("left behind: the control group {}", self.path);
        }
    }
}

/// The most memory that a process has had, in bytes.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}
