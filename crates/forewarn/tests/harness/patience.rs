//! Waiting for something that will be so: looked at again and again, and not for ever.

use std::time::{Duration, Instant};

/// Longer than anything here takes on the slowest machine. Whoever waits for it has failed already.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to see.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_for(PATIENCE, what, look)
}

/// The same with another patience, for programs that take their time.
pub(crate) fn until_for<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < patience, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
