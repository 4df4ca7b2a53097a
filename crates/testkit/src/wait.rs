//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

/// Longer than anything takes on the slowest machine: a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Calls `look` until it gives something.
pub fn wait_until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_until_for(DEADLINE, what, look)
}

/// The same with another deadline, for slow programs.
pub fn wait_until_for<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
