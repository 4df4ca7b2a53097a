//! Pauses after failures: growing, randomised, and bounded.
//!
//! Deterministic for a given seed. It computes pauses and does not sleep.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Upper bound for `Retry-After`. A client that pauses for longer could miss the notice of an event.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Computes pauses after failures.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
    dice: u64,
}

impl Backoff {
    /// Pauses start at `first`, double up to `most`, and are each shortened at random by up to a half.
    ///
    /// ```
    /// use forewarn_client::backoff::Backoff;
    /// use std::time::Duration;
    /// let seconds = Duration::from_secs;
    /// let mut backoff = Backoff::new(seconds(1), seconds(10), 7);
    /// let pauses = [(); 5].map(|()| backoff.pause(None));
    /// assert!(pauses[0] <= seconds(1) && pauses[4] >= seconds(5));
    /// assert!(backoff.pause(Some(seconds(60))) >= seconds(60), "Retry-After is a minimum");
    /// ```
    #[must_use]
    pub fn new(first: Duration, most: Duration, seed: u64) -> Self {
        Self { first: first.min(most), most, failures: 0, dice: seed }
    }

    /// Like [`Backoff::new`], with a random seed.
    #[must_use]
    pub fn with_random_seed(first: Duration, most: Duration) -> Self {
        Self::new(first, most, random_seed())
    }

    /// The pause after one more failure: at least `retry_after`, as far as that is below [`RETRY_AFTER_MAX`].
    pub fn pause(&mut self, retry_after: Option<Duration>) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(16)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        let own = whole.mul_f64(self.roll().mul_add(0.5, 0.5));
        match retry_after.map(|retry_after| retry_after.min(RETRY_AFTER_MAX)) {
            // Clients that got the same Retry-After return at different times, and none too early.
            Some(retry_after) => own.max(retry_after + retry_after.mul_f64(self.roll() * 0.25)),
            None => own,
        }
    }

    /// Records a success: the next failure counts as the first.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Number of failures since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// A number from 0 to 1 (splitmix64).
    fn roll(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(high) / f64::from(u32::MAX)
    }
}

/// A seed that differs between processes. Not secret.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_machines_do_not_come_back_together() {
        let [mut one, mut other] =
            [1, 2].map(|seed| Backoff::new(Duration::from_secs(1), Duration::from_secs(15), seed));
        assert!((0..8).all(|_| one.pause(None) != other.pause(None)));
        assert_ne!(random_seed(), random_seed());
    }

    #[test]
    fn after_it_went_well_it_begins_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15), 3);
        for _ in 0..10 {
            backoff.pause(None);
        }
        assert_eq!(backoff.failures(), 10);
        backoff.reset();
        assert!(backoff.pause(None) <= Duration::from_secs(1));
    }

    proptest! {
        /// promise: A6
        #[test]
        fn pauses_are_bounded(
            seed: u64,
            first in 1u64..5_000,
            most in 1u64..60_000,
            wishes in prop::collection::vec(prop::option::of(any::<u64>()), 1..60),
        ) {
            let (first, most) = (Duration::from_millis(first), Duration::from_millis(most));
            let mut backoff = Backoff::new(first, most, seed);
            for retry_after in wishes.into_iter().map(|retry_after| retry_after.map(Duration::from_secs)) {
                let pause = backoff.pause(retry_after);
                prop_assert!(pause >= first.min(most) / 2);
                prop_assert!(pause >= retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
                let longest = if retry_after.is_some() { most.max(RETRY_AFTER_MAX * 5 / 4) } else { most };
                prop_assert!(pause <= longest);
            }
        }
    }
}
