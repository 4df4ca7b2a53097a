//! Machines that are network namespaces, and a host that has the address everybody expects.
//!
//! ```text
//!   namespace of a machine                          namespace of the host
//!   eth0 10.77.N.2 ───────────── veth ───────────── vmN 10.77.N.1     lo 169.254.169.254
//!   169.254.169.254 via 10.77.N.1                   (the program listens on port 80)
//!   the other machines via 10.77.N.1                (and passes packets on)
//! ```
//!
//! Needs root. Whatever a test leaves behind goes when its namespaces go.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::command::stdout_of;

/// Where every client looks.
pub const METADATA: &str = "169.254.169.254";

/// Where machines are.
const MACHINES: &str = "10.77.0.0/16";

/// A host, and machines beside it.
pub struct Network {
    host: Namespace,
    machines: Vec<Namespace>,
}

/// Machines on one network, each of which reaches every other directly.
pub struct Switch(Namespace);

/// A network namespace of our own.
pub struct Namespace(String);

static COUNTER: AtomicU32 = AtomicU32::new(0);

impl Network {
    /// A host and that many machines; number N calls from [`address`] N.
    pub fn of(machines: u8) -> Self {
        let host = Namespace::new("host");
        host.ip(&["addr", "add", &format!("{METADATA}/32"), "dev", "lo"]);
        host.shell("echo 1 > /proc/sys/net/ipv4/ip_forward");
        let machines = (0..machines).map(|number| host.attach(number)).collect();
        Self { host, machines }
    }

    pub fn host(&self) -> &Namespace {
        &self.host
    }

    pub fn machine(&self, number: usize) -> &Namespace {
        &self.machines[number]
    }
}

impl Switch {
    pub fn new() -> Self {
        let namespace = Namespace::new("switch");
        namespace.ip(&["link", "add", "bridge", "type", "bridge"]);
        namespace.ip(&["link", "set", "bridge", "up"]);
        Self(namespace)
    }

    /// A machine with an address, such as `10.78.0.1/24`.
    pub fn attach(&self, address: &str) -> Namespace {
        let machine = Namespace::new("machine");
        let link = format!("port{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        self.0.ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &machine.0]);
        self.0.ip(&["link", "set", &link, "master", "bridge", "up"]);
        machine.ip(&["addr", "add", address, "dev", "eth0"]);
        machine.ip(&["link", "set", "eth0", "up"]);
        machine
    }
}

/// From where a machine calls.
pub fn address(number: u8) -> String {
    format!("10.77.{number}.2")
}

impl Namespace {
    fn new(role: &str) -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("forewarn-{role}-{}-{number}", process::id());
        stdout_of(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self(name);
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    fn attach(&self, number: u8) -> Self {
        let machine = Self::new("vm");
        let link = format!("vm{number}");
        self.ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &machine.0]);
        let gateway = format!("10.77.{number}.1");
        self.ip(&["addr", "add", &format!("{gateway}/24"), "dev", &link]);
        self.ip(&["link", "set", &link, "up"]);
        machine.ip(&["addr", "add", &format!("{}/24", address(number)), "dev", "eth0"]);
        machine.ip(&["link", "set", "eth0", "up"]);
        for beyond in [METADATA, MACHINES] {
            machine.ip(&["route", "add", beyond, "via", &gateway]);
        }
        machine
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.0
    }

    fn ip(&self, words: &[&str]) {
        stdout_of(Command::new("ip").args(["-n", &self.0]).args(words));
    }

    /// A program that runs in here, ready for its arguments.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        // A proxy of the developer's knows nothing of the machines here.
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    /// A way in for threads of this process.
    pub fn entrance(&self) -> NamespaceEntrance {
        NamespaceEntrance(File::open(format!("/run/netns/{}", self.0)).expect("the namespace exists"))
    }

    /// What a line for the shell prints in here.
    pub fn shell(&self, line: &str) -> String {
        stdout_of(self.command("sh").args(["-c", line]))
    }
}

/// The file of a network namespace.
pub struct NamespaceEntrance(File);

impl NamespaceEntrance {
    /// Moves the calling thread into the namespace: its new connections begin there.
    pub fn enter(&self) {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(self.0.as_fd(), kind).expect("only root may");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let deleted = Command::new("ip").args(["netns", "del", &self.0]).output();
        if !deleted.is_ok_and(|output| output.status.success()) {
            eprintln!("left behind: the network namespace {}", self.0);
        }
    }
}
