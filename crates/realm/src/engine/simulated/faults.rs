//! Faults of a client of the simulated engine.

use std::collections::VecDeque;

use super::EngineTransaction;

/// A fault that a transaction meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedFault {
    /// It is lost, and never applied.
    LostRequest,
    /// It is applied, and its answer is lost.
    LostAnswer,
    /// It has no answer, and is applied later: see [`super::SimulatedEngine::deliver_delayed`].
    Delayed,
    /// It is refused.
    Refused,
}

/// A fault that an event of a watch meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// It is lost.
    Dropped,
    /// It comes twice.
    Repeated,
    /// The watch ends before it.
    Ended,
}

/// Rates of random faults, in a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRates {
    /// The beginning of the random numbers.
    pub seed: u64,
    /// Transactions that have no answer.
    pub transactions: u64,
    /// Reads that have no answer.
    pub reads: u64,
    /// Events of watches.
    pub events: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    #[default]
    Open,
    Cut,
}

/// The faults of a client.
#[derive(Debug, Default)]
pub(super) struct ClientFaults {
    pub(super) reach: Reach,
    /// Transactions after which the client is cut off. None: it is not.
    pub(super) left: Option<usize>,
    pub(super) queue: VecDeque<SimulatedFault>,
    pub(super) watch_queue: VecDeque<WatchFault>,
    pub(super) rates: Option<FaultRates>,
    pub(super) delayed: Vec<EngineTransaction>,
}

impl ClientFaults {
    /// Takes note of a transaction that comes next.
    pub(super) fn count(&mut self) {
        match &mut self.left {
            None => {}
            Some(0) => self.reach = Reach::Cut,
            Some(left) => *left -= 1,
        }
    }

    /// The fault of the next transaction.
    pub(super) fn next(&mut self) -> Option<SimulatedFault> {
        if let Some(fault) = self.queue.pop_front() {
            return Some(fault);
        }
        let rates = self.rates.as_mut()?;
        let met = rates.draw(rates.transactions)?;
        let kinds = [SimulatedFault::LostRequest, SimulatedFault::LostAnswer, SimulatedFault::Delayed];
        Some(kinds[met % kinds.len()])
    }

    /// Returns true if the next read has no answer.
    pub(super) fn loses_read(&mut self) -> bool {
        self.rates.as_mut().is_some_and(|rates| rates.draw(rates.reads).is_some())
    }

    /// The fault of the next event.
    pub(super) fn next_of_watch(&mut self) -> Option<WatchFault> {
        if let Some(fault) = self.watch_queue.pop_front() {
            return Some(fault);
        }
        let rates = self.rates.as_mut()?;
        let met = rates.draw(rates.events)?;
        let kinds = [WatchFault::Dropped, WatchFault::Repeated, WatchFault::Ended];
        Some(kinds[met % kinds.len()])
    }
}

impl FaultRates {
    /// A random number, in that many of a thousand cases.
    fn draw(&mut self, rate: u64) -> Option<usize> {
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % 1_000 < rate).then(|| usize::try_from(mixed >> 40).unwrap_or(0))
    }
}
