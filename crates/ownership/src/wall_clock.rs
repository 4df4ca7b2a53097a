//! The verdict on the wall clock of a server: one that differs from the others starts nothing.

/// The largest permitted difference of a wall clock from the median of the others, in milliseconds.
pub const WALL_DIFFERENCE_MILLIS: u64 = 2_000;

/// The wall clock of another server, compared with that of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallReading {
    /// Milliseconds by which the other clock is ahead.
    pub ahead_millis: i64,
    /// The bound of the error: half of the round trip in which the clock was read.
    pub error_millis: u64,
}

/// The verdict on the wall clock of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// The server may start events.
    Agrees,
    /// The server starts nothing: its clock differs too much, or may.
    Hold {
        /// Milliseconds by which the clock of this server is ahead of the median of the others.
        by_millis: i64,
    },
}

/// Compares the wall clock of a server with the median of the others. Of an even number of clocks, the one of the two
/// in the middle that is closer counts: of three servers, one with a wrong clock holds only itself.
#[must_use]
pub fn verdict(others: &[WallReading]) -> ClockVerdict {
    let mut sorted = others.to_vec();
    sorted.sort_unstable_by_key(|reading| reading.ahead_millis);
    let middle = &sorted[sorted.len().saturating_sub(1) / 2..(sorted.len() / 2 + 1).min(sorted.len())];
    match middle.iter().min_by_key(|reading| bound(reading)) {
        Some(closest) if bound(closest) > WALL_DIFFERENCE_MILLIS => {
            ClockVerdict::Hold { by_millis: closest.ahead_millis.saturating_neg() }
        }
        Some(_) | None => ClockVerdict::Agrees,
    }
}

/// The largest difference that a reading permits.
fn bound(reading: &WallReading) -> u64 {
    reading.ahead_millis.unsigned_abs().saturating_add(reading.error_millis)
}
