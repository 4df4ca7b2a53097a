//! Throttle for log lines that an attack could repeat without end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time between two lines of one kind.
const PAUSE: Duration = Duration::from_mins(1);

/// Throttle of one kind of log line: the first passes at once, then one a minute, with the number of suppressed lines.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<LogHistory>);

#[derive(Debug, Default)]
struct LogHistory {
    last: Option<Instant>,
    unlogged: u64,
}

impl Throttle {
    /// Number of lines suppressed since the last one; `None` if this line is to be suppressed, too.
    pub fn pass(&self) -> Option<u64> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if recent.last.is_some_and(|last| now - last < PAUSE) {
            recent.unlogged += 1;
            return None;
        }
        recent.last = Some(now);
        Some(std::mem::take(&mut recent.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: S5
    #[tokio::test(start_paused = true)]
    async fn a_line_passes_once_and_then_once_a_minute_with_a_count() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass(), Some(0));
        assert_eq!((throttle.pass(), throttle.pass()), (None, None));
        tokio::time::advance(PAUSE).await;
        assert_eq!(throttle.pass(), Some(2));
        assert_eq!(throttle.pass(), None);
    }
}
