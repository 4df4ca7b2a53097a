//! Gaps: the longest time without an acknowledged write, when parts of a realm are lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use forewarn_bench::LoadResult;

use crate::site::{COUNT, Part, Site};

/// Time of writing before a loss, and after it.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(5);

/// Pause after a write, and after one that failed.
const PAUSE: Duration = Duration::from_millis(10);

/// The parts that are lost at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Server,
    Leader,
    Both,
    /// Nothing is lost: the cluster moves to another server.
    Move,
}

impl Loss {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "server" => Some(Self::Server),
            "leader" => Some(Self::Leader),
            "both" => Some(Self::Both),
            "move" => Some(Self::Move),
            _ => None,
        }
    }
}

/// The longest gap, in seconds. Everything that was lost runs again afterwards.
pub(crate) fn measure(site: &Site, loss: Loss, round: u32) -> LoadResult<f64> {
    let (owner, _) = site.owner(0)?;
    let leader = site.leader()?;
    let (lost_server, lost_member) = match loss {
        Loss::Server => (Some(owner), None),
        Loss::Leader => (None, Some(leader)),
        Loss::Both => (Some(owner), Some(leader)),
        Loss::Move => (None, None),
    };
    let server = lost_server.map(|number| &site.servers[number]);
    let lost: Vec<_> = lost_member.map(|number| &site.members[number]).into_iter().chain(server).collect();
    let (stop, number, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    let write_all = |server: usize| {
        while !stop.load(Ordering::Relaxed) {
            let name = format!("{loss:?}-{round}-{}", number.fetch_add(1, Ordering::Relaxed)).to_lowercase();
            if write(site, server, &name).is_ok() {
                acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
            std::thread::sleep(PAUSE);
        }
    };
    let moved = std::thread::scope(|scope| {
        // A client of the lost server would have to find another one.
        for server in (0..COUNT).filter(|server| Some(*server) != lost_server) {
            let write_all = &write_all;
            scope.spawn(move || write_all(server));
        }
        std::thread::sleep(BEFORE);
        lost.iter().for_each(|part| part.kill());
        let moved = match loss {
            Loss::Move => move_cluster(site, owner),
            Loss::Server | Loss::Leader | Loss::Both => Ok(()),
        };
        std::thread::sleep(AFTER);
        stop.store(true, Ordering::Relaxed);
        moved
    });
    lost.into_iter().try_for_each(Part::start)?;
    moved?;
    site.wait_for_all()?;
    let times = acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
    let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64());
    Ok(gaps.fold(0.0, f64::max))
}

/// Creates a host, on a connection of its own.
fn write(site: &Site, server: usize, name: &str) -> LoadResult<()> {
    let body = format!("{{\"command\":\"admit_host\",\"name\":\"{name}\"}}");
    site.connect(server)?.post("/v1/commands", &body).map(drop)
}

/// Moves the default cluster to another server.
fn move_cluster(site: &Site, owner: usize) -> LoadResult<()> {
    let next = (owner + 1) % COUNT;
    site.connect(owner)?.post("/v1/clusters/default/move", &format!("{{\"to\":\"s{next}\"}}")).map(drop)
}
