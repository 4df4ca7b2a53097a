//! A machine: a network namespace on a bridge, with its own boot, its own small disks, a member of etcd and a server.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use forewarn_testkit::command::{clean, stdout_of};
use forewarn_testkit::network::Namespace;
use forewarn_testkit::wait_until;
use rustix::process::{Pid, Signal, kill_process};

/// Ports of every machine.
pub(super) const ETCD_PORT: u16 = 2379;
pub(super) const ETCD_PEER_PORT: u16 = 2380;
pub(super) const SERVER_PORT: u16 = 1341;

/// The first port of guests: guest N polls at this port and N.
const GUEST_PORT: u16 = 8000;

/// Sizes of the disks. A member of etcd reserves two files of 64 MB.
const ETCD_DISK: &str = "256m";
const SERVER_DISK: &str = "192m";

/// The library that changes the wall clock of a process.
const FAKE_CLOCK: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// A program on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Server,
    Etcd,
}

pub(super) const ROLES: [Role; 2] = [Role::Server, Role::Etcd];

/// A machine with its processes.
pub(super) struct Machine {
    number: usize,
    /// They end before the namespaces that they are in.
    processes: [Option<Child>; 2],
    holder: Child,
    /// The process whose namespaces programs join.
    held: u32,
    _namespace: Namespace,
    directory: PathBuf,
    /// The command of each program.
    commands: [Vec<String>; 2],
}

impl Role {
    fn index(self) -> usize {
        match self {
            Self::Server => 0,
            Self::Etcd => 1,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Etcd => "etcd",
        }
    }
}

impl Machine {
    /// A machine whose computer has run for so many seconds longer than this one.
    pub(super) fn new(number: usize, namespace: Namespace, directory: PathBuf, uptime: u64) -> Self {
        ROLES.iter().for_each(|role| fs::create_dir_all(directory.join(role.name())).unwrap());
        let boot =
            format!("00000000-0000-4000-8000-{:012x}\n", u64::from(std::process::id()) * 16 + number as u64);
        fs::write(directory.join("boot_id"), boot).unwrap();
        fs::write(directory.join("clock"), "+0\n").unwrap();
        let script = format!(
            "cd \"$0\" && mount --bind boot_id /proc/sys/kernel/random/boot_id && \
             mount -t tmpfs -o size={SERVER_DISK} tmpfs server && mount -t tmpfs -o size={ETCD_DISK} tmpfs etcd && \
             echo $$ >held.new && mv held.new held && exec sleep infinity"
        );
        let mut unshare = namespace.command("unshare");
        unshare.args(["--mount", "--propagation", "private", "--time", "--boottime", &uptime.to_string()]);
        unshare.args(["--fork", "--kill-child=KILL", "sh", "-c", &script]).arg(&directory);
        let mut holder = unshare.stdin(Stdio::null()).spawn().expect("unshare starts");
        let held = wait_until("a machine is ready", || {
            assert!(holder.try_wait().unwrap().is_none(), "the machine was not made");
            fs::read_to_string(directory.join("held")).ok()?.trim().parse().ok()
        });
        Self {
            number,
            processes: [None, None],
            holder,
            held,
            _namespace: namespace,
            directory,
            commands: Default::default(),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("s{}", self.number)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The socket of operators.
    pub(super) fn api_socket(&self) -> PathBuf {
        self.directory.join("api.sock")
    }

    /// The address at which a guest polls this machine.
    pub(super) fn guest_address(&self, guest: usize) -> SocketAddr {
        SocketAddr::new(address(self.number).parse().unwrap(), GUEST_PORT + u16::try_from(guest).unwrap())
    }

    pub(super) fn log_file(&self, role: Role) -> PathBuf {
        self.directory.join(format!("{}.log", role.name()))
    }

    /// Sets the command with which a program starts.
    pub(super) fn set_command(&mut self, role: Role, words: Vec<String>) {
        self.commands[role.index()] = words;
    }

    /// A program that runs on the machine.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        clean(&mut command);
        command.args(["--target", &self.held.to_string(), "--net", "--mount", "--time", "--", program]);
        command
    }

    /// The process of a program.
    pub(super) fn process(&self, role: Role) -> Option<Pid> {
        self.processes[role.index()].as_ref().map(Pid::from_child)
    }

    /// Starts a program that does not run.
    pub(super) fn start(&mut self, role: Role) {
        self.kill(role);
        let words = &self.commands[role.index()];
        let mut command = self.command(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let log = OpenOptions::new().create(true).append(true).open(self.log_file(role)).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        match role {
            Role::Server => {
                command.env("LD_PRELOAD", FAKE_CLOCK).env("DONT_FAKE_MONOTONIC", "1");
                command.env("FAKETIME_TIMESTAMP_FILE", self.directory.join("clock"));
                command.env("FAKETIME_CACHE_DURATION", "1");
                command.env("HANDS", self.directory.parent().expect("a site"));
            }
            Role::Etcd => {
                let settings = std::env::vars_os().map(|(name, _)| name);
                settings.filter(|name| name.to_string_lossy().starts_with("ETCD_")).for_each(|name| {
                    command.env_remove(name);
                });
            }
        }
        self.processes[role.index()] = Some(command.spawn().expect("the program starts"));
    }

    /// Ends a program as a power cut would, as far as a process can tell.
    pub(super) fn kill(&mut self, role: Role) {
        if let Some(mut child) = self.processes[role.index()].take() {
            child.kill().ok();
            child.wait().unwrap();
        }
    }

    /// Starts a program again that has ended, killed or by itself. Returns true if it has.
    pub(super) fn restart_if_ended(&mut self, role: Role) -> bool {
        let process = self.processes[role.index()].as_mut();
        let has_ended = process.is_none_or(|child| child.try_wait().unwrap().is_some());
        if has_ended {
            self.start(role);
        }
        has_ended
    }

    /// Stops a program, or lets it go on. Does nothing if it does not run.
    pub(super) fn signal(&self, role: Role, signal: Signal) {
        if let Some(child) = &self.processes[role.index()] {
            kill_process(Pid::from_child(child), signal).ok();
        }
    }

    /// Shifts the wall clock of the server by so many seconds, while it runs.
    pub(super) fn shift_wall_clock(&self, seconds: i64) {
        fs::write(self.directory.join("clock"), format!("{seconds:+}\n")).unwrap();
    }

    /// Fills the disk of a program, or frees it again.
    pub(super) fn fill_disk(&self, role: Role) {
        let file = self.directory.join(role.name()).join("filler");
        // It ends with an error, when nothing is left.
        let mut fill = self.command("dd");
        fill.arg("if=/dev/zero").arg(format!("of={}", file.display())).arg("bs=64k");
        fill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("dd starts");
    }

    pub(super) fn free_disk(&self, role: Role) {
        let file = self.directory.join(role.name()).join("filler");
        stdout_of(self.command("rm").arg("-f").arg(file));
    }

    /// Replaces the rules of the packet filter.
    pub(super) fn filter(&self, rules: &str) {
        let file = self.directory.join("rules.nft");
        let text = format!(
            "flush ruleset\ntable inet faults {{\n chain input {{\n type filter hook input priority 0; policy accept;\n{rules}}}\n}}\n"
        );
        fs::write(&file, text).unwrap();
        stdout_of(self.command("nft").arg("-f").arg(file));
    }

    /// Saves the disk of the server: it is gone with the namespaces.
    pub(super) fn keep_disk(&self, target: &Path) {
        let data = self.directory.join("server");
        let file = File::create(target.join(format!("s{}-data.tar", self.number))).unwrap();
        self.command("tar").arg("-C").arg(data).args(["-cf", "-", "."]).stdout(file).status().ok();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for role in ROLES {
            self.kill(role);
        }
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

/// The address of a machine.
pub(super) fn address(number: usize) -> String {
    format!("10.78.0.{}", number + 1)
}
