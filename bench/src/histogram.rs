//! How often something took how long, to within two percent.

/// Each doubling of the time has 2⁶ buckets.
const FINE_BITS: u32 = 6;
const FINE: usize = 1 << FINE_BITS;
const BUCKETS: usize = (u64::BITS - FINE_BITS + 1) as usize * FINE;

/// Counts by bucket; a bucket is the wider, the longer the times in it.
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    pub fn add(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
    }

    /// A time that at least that many percent did not exceed; 0, if nothing was counted.
    pub fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.total * percent).div_ceil(100);
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= wanted
        };
        let found = self.counts.iter().position(reaches).filter(|_| self.total > 0);
        found.map_or(0, last_of)
    }
}

/// The first 2⁶ numbers have a bucket each; from there on the highest seven bits choose it.
fn bucket(nanoseconds: u64) -> usize {
    let shift = nanoseconds.max(1).ilog2().saturating_sub(FINE_BITS);
    let fine = usize::try_from(nanoseconds >> shift).expect("seven bits");
    shift as usize * FINE + fine
}

/// The longest time in a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket / FINE).saturating_sub(1);
    let fine = (bucket - shift * FINE) as u64;
    (fine << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_that_is_not_much_longer() {
        for time in (0..10_000).chain([65_535, 65_536, 123_456_789, u64::MAX / 3, u64::MAX]) {
            let last = last_of(bucket(time));
            assert!(last >= time && last - time <= time / FINE as u64, "{time}: {last}");
            assert_eq!(bucket(last), bucket(time));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_counted_from_below() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(50), 0);
        for time in 1..=50 {
            histogram.add(time);
        }
        assert_eq!(
            (histogram.percentile(50), histogram.percentile(99), histogram.percentile(100)),
            (25, 50, 50)
        );
    }
}
