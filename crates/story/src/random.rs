//! Numbers that look random and follow from a seed: the same story is the same everywhere.

/// A generator of numbers: a counter whose bits are mixed.
pub(crate) struct SeededNumbers {
    counter: u64,
}

/// An odd number far from any pattern: the counter passes every value before it repeats.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SeededNumbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    fn next(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(STEP);
        let mixed = (self.counter ^ (self.counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0. Smaller numbers are more frequent by less than `end` in 2^64.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let number = self.next();
        number.checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_seed_and_reach_every_value() {
        let numbers = |seed| {
            let mut numbers = SeededNumbers::new(seed);
            (0..100).map(|_| numbers.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!((0..10).all(|value| numbers(7).contains(&value)));
        assert_eq!(SeededNumbers::new(1).below(0), 0);
    }
}
