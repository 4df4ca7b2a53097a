//! Clients of all servers, which write down everything that they send and receive.

pub(crate) mod api;
mod guests;
mod operators;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forewarn_testkit::Random;

use super::history::History;
use super::machine::Machine;
use super::site::MachineSite;

use guests::GuestPolls;
use operators::Operator;

/// Operators at work.
const OPERATORS: u64 = 3;

/// The history that all clients write.
pub(super) type SharedHistory = Arc<Mutex<History>>;

/// Clients, each in a thread.
pub(super) struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The beginning of a history, and the history.
#[derive(Clone)]
pub(super) struct Record {
    begin: Instant,
    history: SharedHistory,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { begin: Instant::now(), history: SharedHistory::default() }
    }

    /// The time since the beginning.
    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    pub(super) fn write(&self, change: impl FnOnce(&mut History)) {
        change(&mut self.history.lock().expect("no client fails"));
    }

    /// The history so far.
    pub(super) fn copy(&self) -> History {
        self.history.lock().expect("no client fails").clone()
    }
}

impl Clients {
    /// Operators of a round. The prefix makes their names unique.
    pub(super) fn operators(site: &MachineSite, record: &Record, (prefix, seed): (&str, u64)) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sockets: Vec<PathBuf> = site.machines.iter().map(Machine::api_socket).collect();
        let operator = |number: u64| {
            let (stop, prefix) = (Arc::clone(&stop), format!("{prefix}-o{number}"));
            let random = Random::new(seed.wrapping_mul(1000).wrapping_add(number));
            let operator = Operator::new(prefix, sockets.clone(), random, record.clone());
            thread::spawn(move || operator.run(&|| stop.load(Ordering::Relaxed)))
        };
        let threads = (0..OPERATORS).map(operator).collect();
        Self { stop, threads }
    }

    /// Guests, which poll from the first round to the last: a thread for each server.
    pub(super) fn guests(site: &MachineSite, record: &Record, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let guests = |server: usize| {
            let (stop, namespace) = (Arc::clone(&stop), site.clients.entrance());
            let random = Random::new(seed.wrapping_mul(2000).wrapping_add(server as u64));
            let polls = GuestPolls::new(site, server, random, record.clone());
            thread::spawn(move || {
                namespace.enter();
                polls.run(&|| stop.load(Ordering::Relaxed));
            })
        };
        let threads = (0..site.machines.len()).map(guests).collect();
        Self { stop, threads }
    }

    /// Stops all of them.
    pub(super) fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client does not fail");
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
