//! The hold of a server in a realm whose wall clock differs from those of the others: it starts no event.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The difference of the wall clock of this server, while it holds all starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockHold(Arc<AtomicI64>);

impl ClockHold {
    /// Sets the milliseconds by which the clock is ahead of those of the other servers, or clears the hold. Returns true if
    /// the hold begins or ends.
    pub(crate) fn set(&self, by_millis: Option<i64>) -> bool {
        let new = by_millis.filter(|millis| *millis != 0).unwrap_or(i64::from(by_millis.is_some()));
        let before = self.0.swap(new, Ordering::Relaxed);
        (before == 0) != (new == 0)
    }

    /// Milliseconds by which the clock is ahead; None without a hold.
    pub(crate) fn by_millis(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|millis| *millis != 0)
    }

    pub(crate) fn is_held(&self) -> bool {
        self.by_millis().is_some()
    }

    /// The hold as a sentence.
    pub(crate) fn text(by_millis: i64) -> String {
        let direction = if by_millis > 0 { "ahead of" } else { "behind" };
        let millis = by_millis.unsigned_abs();
        format!("clock is {millis} ms {direction} those of the other servers; no event starts on this server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_begins_and_ends_once() {
        let hold = ClockHold::default();
        assert!(!hold.set(None) && hold.set(Some(-2_500)) && !hold.set(Some(3_000)));
        assert_eq!((hold.by_millis(), hold.is_held()), (Some(3_000), true));
        assert!(hold.set(None) && !hold.is_held());
        assert!(hold.set(Some(0)) && hold.is_held(), "its error may be large");
        assert!(ClockHold::text(-2_500).starts_with("clock is 2500 ms behind those"));
    }
}
