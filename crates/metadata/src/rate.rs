//! Rate limits per machine: token buckets, each stored as the time at which it is full again.
//!
//! A machine whose bucket is full has no entry.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use forewarn_types::{ClusterId, MachineId};

use crate::callers::CallerId;

/// Rate limit of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Sustained requests per second.
    pub per_second: u32,
    /// Requests at once, after a pause.
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self { per_second: 5, burst: 20 }
    }
}

const SHARDS: usize = 64;

/// A shard with fewer entries is never swept.
const SWEPT_FROM: usize = 1_024;

/// The buckets of all machines.
#[derive(Debug)]
pub(crate) struct Limiter {
    refill: Duration,
    depth: Duration,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug)]
struct Shard {
    full_at: HashMap<u64, Instant>,
    sweep_at: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { full_at: HashMap::new(), sweep_at: SWEPT_FROM }
    }
}

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Self {
        let refill = Duration::from_secs(1) / rate.per_second.max(1);
        let depth = refill.saturating_mul(rate.burst.max(1));
        Self { refill, depth, shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Takes one request out of the bucket of a machine. Returns false if the bucket is empty.
    pub(crate) fn take(&self, caller: CallerId, now: Instant) -> bool {
        let CallerId { cluster: ClusterId(cluster), machine: MachineId(machine) } = caller;
        let key = u64::from(cluster) << u32::BITS | u64::from(machine);
        // A shard is consistent at every moment, even if a holder of the lock panicked.
        let shard = &self.shards[machine as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = shard.full_at.get(&key).copied().unwrap_or(now).max(now) + self.refill;
        if full_at - now > self.depth {
            return false;
        }
        shard.full_at.insert(key, full_at);
        shard.sweep(now);
        true
    }
}

impl Shard {
    fn sweep(&mut self, now: Instant) {
        if self.full_at.len() >= self.sweep_at {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.sweep_at = (2 * self.full_at.len()).max(SWEPT_FROM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(cluster: u32, machine: u32) -> CallerId {
        CallerId { cluster: ClusterId(cluster), machine: MachineId(machine) }
    }

    #[test]
    fn a_burst_passes_and_then_five_a_second() {
        let limiter = Limiter::new(Rate::default());
        let start = Instant::now();
        let passed = |machine, now| (0..100).filter(|_| limiter.take(caller(0, machine), now)).count();
        assert_eq!(passed(1, start), 20);
        assert_eq!(passed(65, start), 20, "another machine in the same shard");
        assert_eq!(passed(1, start + Duration::from_secs(1)), 5);
        assert_eq!(passed(1, start + Duration::from_secs(60)), 20);
    }

    /// promise: M4
    #[test]
    fn machines_of_two_clusters_with_the_same_number_have_their_own_limits() {
        let limiter = Limiter::new(Rate { per_second: 1, burst: 1 });
        let now = Instant::now();
        assert!(limiter.take(caller(0, 1), now));
        assert!(!limiter.take(caller(0, 1), now));
        assert!(limiter.take(caller(1, 1), now));
    }

    #[test]
    fn full_buckets_are_removed() {
        let limiter = Limiter::new(Rate::default());
        let start = Instant::now();
        let machines = u32::try_from(SWEPT_FROM * SHARDS).expect("a small number");
        for machine in 0..machines {
            let later = start + Duration::from_secs(u64::from(machine));
            assert!(limiter.take(caller(0, machine), later));
        }
        let entries = limiter.shards[63].lock().expect("not poisoned").full_at.len();
        assert!(entries <= 1, "{entries}");
    }
}
