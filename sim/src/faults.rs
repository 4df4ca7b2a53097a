//! Faults from a seed: each simulation has some of the kinds, and its own rates.

use forewarn_control::ClusterId;

use crate::message::Node;
use crate::names::SERVERS;
use crate::random::Random;

/// A fault, or an act of an operator that changes owners.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// A process ends, and starts again later. Its copies may lose batches, and its computer may start again.
    Crash {
        server: usize,
        millis: u64,
        lost_batches: usize,
        reboots: bool,
    },
    /// A process does nothing for a while.
    Pause {
        server: usize,
        millis: u64,
    },
    /// Nothing arrives in these directions.
    Partition {
        directions: Vec<(Node, Node)>,
        millis: u64,
    },
    /// The engine gets nothing.
    EngineOutage {
        millis: u64,
    },
    /// The engine carries out everything later.
    SlowEngine {
        millis: u64,
    },
    /// A wall clock is stepped; of all servers, if none is named.
    ClockStep {
        server: Option<usize>,
        millis: i64,
    },
    Move {
        cluster: ClusterId,
        to: usize,
    },
    Drain {
        server: usize,
    },
    /// The server crashes, or does nothing for a while, as soon as an announcement of it is in the log, before it knows.
    Ambush {
        server: usize,
        pauses: bool,
        millis: u64,
    },
    /// Messages are lost, late and repeated at these rates.
    Weather {
        losses: u64,
        late: u64,
        repeated: u64,
        late_millis: u64,
    },
}

const KINDS: usize = 10;

/// The faults of a simulation, in the order of their times.
pub(crate) fn schedule(random: &mut Random, end: u64, clusters: &[ClusterId]) -> Vec<(u64, Fault)> {
    let kinds: Vec<_> = (0..KINDS).filter(|_| random.per_mille(550)).collect();
    let pause = random.between(1_500, 8_000);
    let mut faults = Vec::new();
    let mut at = random.between(2_000, 6_000);
    while at < end && !kinds.is_empty() {
        let kind = kinds[random.index(kinds.len())];
        faults.push((at, fault(random, kind, clusters)));
        // Some faults come together.
        at += if random.per_mille(250) { random.between(1, 400) } else { random.between(300, 2 * pause) };
    }
    faults
}

fn fault(random: &mut Random, kind: usize, clusters: &[ClusterId]) -> Fault {
    let server = random.index(SERVERS);
    match kind {
        0 => Fault::Crash {
            server,
            millis: random.between(100, 12_000),
            lost_batches: if random.per_mille(400) { random.index(5) } else { 0 },
            reboots: random.per_mille(300),
        },
        1 => Fault::Pause { server, millis: random.between(200, 15_000) },
        2 => Fault::Partition { directions: directions(random, server), millis: random.between(300, 15_000) },
        3 => Fault::EngineOutage { millis: random.between(200, 6_000) },
        4 => Fault::SlowEngine { millis: random.between(300, 20_000) },
        5 => {
            let millis = random.between(0, 80_000).cast_signed() - 40_000;
            Fault::ClockStep { server: random.per_mille(700).then_some(server), millis }
        }
        6 => Fault::Move { cluster: clusters[random.index(clusters.len())], to: server },
        7 => Fault::Drain { server },
        8 => Fault::Ambush { server, pauses: random.per_mille(500), millis: random.between(500, 20_000) },
        _ => Fault::Weather {
            losses: random.between(0, 120),
            late: random.between(0, 150),
            repeated: random.between(0, 100),
            late_millis: random.between(10, 4_000),
        },
    }
}

/// The directions of a partition: around a server, or between it and one other part; one way or both.
fn directions(random: &mut Random, server: usize) -> Vec<(Node, Node)> {
    let own = Node::Server(server);
    let others: Vec<_> = (0..SERVERS).filter(|other| *other != server).map(Node::Server).collect();
    let parts = match random.index(4) {
        0 => vec![Node::Engine],
        1 => vec![others[random.index(others.len())]],
        2 => others,
        _ => others.into_iter().chain([Node::Engine]).collect(),
    };
    let (out, back) = [(true, true), (true, false), (false, true)][random.index(3)];
    let both = parts.into_iter().flat_map(|part| [(out, (own, part)), (back, (part, own))]);
    both.filter(|(is_blocked, _)| *is_blocked).map(|(_, direction)| direction).collect()
}
