//! Faults of a round, chosen from a seed.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use forewarn_testkit::Random;
use rustix::process::Signal;

use super::machine::{ETCD_PEER_PORT, ETCD_PORT, ROLES, Role, SERVER_PORT, address};
use super::site::{MACHINES, MachineSite};

/// Faults of a round begin within this time.
const ACTIVE: Duration = Duration::from_secs(9);

/// The longest stop, in one of so many rounds; other stops are shorter.
const LONGEST_STOP: Duration = Duration::from_secs(30);
const ROUNDS_PER_LONGEST_STOP: u64 = 8;

/// A fault, and the time for which it lasts.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    begins: Duration,
    lasts: Duration,
    machine: usize,
    kind: FaultKind,
}

#[derive(Clone, Debug)]
enum FaultKind {
    Kill(Vec<Role>),
    Stop(Vec<Role>),
    /// Packets from these machines are dropped.
    Cut {
        from: Vec<usize>,
        direction: Direction,
        traffic: Traffic,
    },
    /// The wall clock of the server is wrong by so many seconds.
    Clock(i64),
    FullDisk(Role),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Inward,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Servers,
    Etcd,
    All,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begins, lasts, machine, kind } = self;
        write!(
            f,
            "at {:.1} s for {:.1} s, machine {machine}: {kind:?}",
            begins.as_secs_f32(),
            lasts.as_secs_f32()
        )
    }
}

/// The faults of a round: one to three, the first of them of each kind in turn.
pub(super) fn choose(seed: u64) -> Vec<Fault> {
    let random = &mut Random::new(seed);
    let mut faults = vec![fault(seed % KINDS, random)];
    for _ in 0..random.below(3) {
        let kind = random.below(KINDS);
        faults.push(fault(kind, random));
    }
    if seed.is_multiple_of(ROUNDS_PER_LONGEST_STOP) {
        let machine = random.index(MACHINES);
        let kind = FaultKind::Stop(roles(random));
        faults.push(Fault { begins: Duration::ZERO, lasts: LONGEST_STOP, machine, kind });
    }
    faults.sort_by_key(|fault| fault.begins);
    faults
}

/// The number of kinds of faults, of which some are more frequent.
const KINDS: u64 = 8;

fn fault(kind: u64, random: &mut Random) -> Fault {
    let machine = random.index(MACHINES);
    let kind = match kind {
        0 | 1 => FaultKind::Kill(roles(random)),
        2 => FaultKind::Stop(roles(random)),
        3 => cut(machine, Direction::Inward, random),
        4 => cut(machine, Direction::Both, random),
        5 => FaultKind::Clock(clock_error(random)),
        6 => FaultKind::FullDisk(Role::Etcd),
        _ => FaultKind::FullDisk(Role::Server),
    };
    Fault {
        begins: Duration::from_millis(random.below(ACTIVE.as_secs() * 500)),
        lasts: Duration::from_millis(200 + random.below(5_000)),
        machine,
        kind,
    }
}

fn roles(random: &mut Random) -> Vec<Role> {
    match random.below(3) {
        0 => vec![Role::Server],
        1 => vec![Role::Etcd],
        _ => ROLES.to_vec(),
    }
}

/// Cuts a machine off from one other, or from both.
fn cut(machine: usize, direction: Direction, random: &mut Random) -> FaultKind {
    let mut from: Vec<_> = (0..MACHINES).filter(|other| *other != machine).collect();
    if random.coin() {
        from.remove(random.index(from.len()));
    }
    let traffic = [Traffic::Servers, Traffic::Etcd, Traffic::All][random.index(3)];
    FaultKind::Cut { from, direction, traffic }
}

/// Less than the difference that servers accept, or up to an hour.
fn clock_error(random: &mut Random) -> i64 {
    let size = if random.coin() { 1 } else { 3 + random.below(3600).cast_signed() };
    if random.coin() { size } else { -size }
}

/// Carries out the faults of a round, each at its time, and ends those that have an end. The rest is for
/// [`MachineSite::heal`].
pub(super) fn carry_out(site: &mut MachineSite, faults: &[Fault]) {
    let begin = Instant::now();
    let starts = faults.iter().map(|fault| (fault.begins, fault, true));
    let ends = faults.iter().map(|fault| (fault.begins + fault.lasts, fault, false));
    let mut steps: Vec<_> = starts.chain(ends).collect();
    steps.sort_by_key(|(at, ..)| *at);
    for (at, fault, is_begin) in steps {
        thread::sleep(at.saturating_sub(begin.elapsed()));
        if is_begin { fault.begin(site, faults, at) } else { fault.end(site, faults, at) }
    }
    thread::sleep(ACTIVE.saturating_sub(begin.elapsed()));
}

impl Fault {
    fn begin(&self, site: &mut MachineSite, all: &[Self], now: Duration) {
        let machine = &mut site.machines[self.machine];
        match &self.kind {
            FaultKind::Kill(roles) => roles.iter().for_each(|role| machine.kill(*role)),
            FaultKind::Stop(roles) => roles.iter().for_each(|role| machine.signal(*role, Signal::STOP)),
            FaultKind::Cut { .. } => filter(site, all, now),
            FaultKind::Clock(seconds) => machine.shift_wall_clock(*seconds),
            FaultKind::FullDisk(role) => machine.fill_disk(*role),
        }
    }

    fn end(&self, site: &mut MachineSite, all: &[Self], now: Duration) {
        let machine = &mut site.machines[self.machine];
        match &self.kind {
            FaultKind::Kill(roles) => roles.iter().for_each(|role| {
                machine.restart_if_ended(*role);
            }),
            FaultKind::Stop(roles) => roles.iter().for_each(|role| machine.signal(*role, Signal::CONT)),
            FaultKind::Cut { .. } => filter(site, all, now),
            FaultKind::Clock(_) => machine.shift_wall_clock(0),
            FaultKind::FullDisk(role) => {
                machine.free_disk(*role);
                machine.restart_if_ended(*role);
            }
        }
    }

    /// True if the process of a server is killed or stopped.
    pub(super) fn is_of_process(&self, server: usize) -> bool {
        let is_server = |roles: &[Role]| roles.contains(&Role::Server);
        let is_of_server = match &self.kind {
            FaultKind::Kill(roles) | FaultKind::Stop(roles) => is_server(roles),
            FaultKind::Cut { .. } | FaultKind::Clock(_) | FaultKind::FullDisk(_) => false,
        };
        is_of_server && self.machine == server
    }

    fn is_active(&self, now: Duration) -> bool {
        self.begins <= now && now < self.begins + self.lasts
    }
}

/// Gives every machine the rules of all cuts that last.
fn filter(site: &MachineSite, faults: &[Fault], now: Duration) {
    let mut rules = vec![String::new(); MACHINES];
    for fault in faults.iter().filter(|fault| fault.is_active(now)) {
        let FaultKind::Cut { from, direction, traffic } = &fault.kind else { continue };
        for other in from.iter().copied() {
            rules[fault.machine].push_str(&drop_from(other, *traffic));
            if *direction == Direction::Both {
                rules[other].push_str(&drop_from(fault.machine, *traffic));
            }
        }
    }
    site.machines.iter().zip(&rules).for_each(|(machine, rules)| machine.filter(rules));
}

/// Rules that drop packets from a machine.
fn drop_from(machine: usize, traffic: Traffic) -> String {
    let from = address(machine);
    let ports = match traffic {
        Traffic::All => return format!("ip saddr {from} drop\n"),
        Traffic::Servers => format!("{SERVER_PORT}"),
        Traffic::Etcd => format!("{ETCD_PORT}, {ETCD_PEER_PORT}"),
    };
    format!("ip saddr {from} tcp dport {{ {ports} }} drop\nip saddr {from} tcp sport {{ {ports} }} drop\n")
}
