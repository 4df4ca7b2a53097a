//! How long to wait after a failure: longer each time, never two machines in step, never for ever.
//!
//! Deterministic given a seed. It waits for nobody itself.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The longest that anybody may ask us to stay away: whoever is silent for longer misses the notice of an event.
pub const WISH_MAX: Duration = Duration::from_secs(120);

/// Pauses after failures.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
    dice: u64,
}

impl Backoff {
    /// Pauses that begin with `first` and do not exceed `most`, each shortened by chance by up to a half.
    ///
    /// ```
    /// use forewarn_client::backoff::Backoff;
    /// use std::time::Duration;
    /// let seconds = Duration::from_secs;
    /// let mut backoff = Backoff::new(seconds(1), seconds(10), 7);
    /// let pauses = [(); 5].map(|()| backoff.pause(None));
    /// assert!(pauses[0] <= seconds(1) && pauses[4] >= seconds(5));
    /// assert!(backoff.pause(Some(seconds(60))) >= seconds(60), "who is asked to wait waits");
    /// ```
    #[must_use]
    pub fn new(first: Duration, most: Duration, seed: u64) -> Self {
        Self { first: first.min(most), most, failures: 0, dice: seed }
    }

    /// The same, unlike those of any other process.
    #[must_use]
    pub fn by_chance(first: Duration, most: Duration) -> Self {
        Self::new(first, most, chance())
    }

    /// How long to wait after one more failure, at least as long as the other side wishes, if it is not absurd.
    pub fn pause(&mut self, wish: Option<Duration>) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(16)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        let own = whole.mul_f64(self.roll().mul_add(0.5, 0.5));
        match wish.map(|wish| wish.min(WISH_MAX)) {
            // All that were sent away come back at different times, and none too early.
            Some(wish) => own.max(wish + wish.mul_f64(self.roll() * 0.25)),
            None => own,
        }
    }

    /// It went well: the next failure is a first one.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How often it has gone wrong since it last went well.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// From 0 to 1 (splitmix64).
    fn roll(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(high) / f64::from(u32::MAX)
    }
}

/// A number that nobody else has. It is no secret.
pub(crate) fn chance() -> u64 {
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
        assert_ne!(chance(), chance());
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
        #[test]
        fn nobody_is_hammered_and_nobody_waits_for_ever(
            seed: u64,
            first in 1u64..5_000,
            most in 1u64..60_000,
            wishes in prop::collection::vec(prop::option::of(any::<u64>()), 1..60),
        ) {
            let (first, most) = (Duration::from_millis(first), Duration::from_millis(most));
            let mut backoff = Backoff::new(first, most, seed);
            for wish in wishes.into_iter().map(|wish| wish.map(Duration::from_secs)) {
                let pause = backoff.pause(wish);
                prop_assert!(pause >= first.min(most) / 2);
                prop_assert!(pause >= wish.unwrap_or_default().min(WISH_MAX));
                let longest = if wish.is_some() { most.max(WISH_MAX * 5 / 4) } else { most };
                prop_assert!(pause <= longest);
            }
        }
    }
}
