//! Pseudo-random numbers, the same in every run with the same seed.

/// splitmix64: good enough to choose what to do next, and any seed is a good one.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, and not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// The same, as an index into a list. 0, if the list is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below((length as u64).max(1))).unwrap()
    }

    pub fn coin(&mut self) -> bool {
        self.number() >> 63 == 1
    }
}
