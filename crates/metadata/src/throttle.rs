//! Throttle for log lines that an attack could repeat without end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use forewarn_types::Name;
use tokio::time::Instant;

/// Time between two lines of one kind.
const PAUSE: Duration = Duration::from_mins(1);

/// Throttle of one kind of log line: the first passes at once, then one a minute, with the number of suppressed lines.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<LogHistory>);

/// Throttles of one kind of log line, one for each name: a line about one name does not suppress another's. Names come
/// from settings, never from clients, so there are few.
#[derive(Debug, Default)]
pub(crate) struct ThrottleByName(Mutex<BTreeMap<Name, LogHistory>>);

#[derive(Debug, Default)]
struct LogHistory {
    last: Option<Instant>,
    unlogged: u64,
}

impl Throttle {
    /// Number of lines suppressed since the last one; `None` if this line is to be suppressed, too.
    pub fn pass(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pass()
    }
}

impl ThrottleByName {
    /// Number of lines about a name suppressed since the last one; `None` if this line is to be suppressed, too.
    pub(crate) fn pass(&self, name: &Name) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_default().pass()
    }
}

impl LogHistory {
    fn pass(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < PAUSE) {
            self.unlogged += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unlogged))
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
    /// promise: S5
    #[tokio::test(start_paused = true)]
    async fn a_line_about_one_name_does_not_suppress_another() {
        let (throttles, [west, east]) =
            (ThrottleByName::default(), ["west", "east"].map(|name| Name::new(name).unwrap()));
        assert_eq!((throttles.pass(&west), throttles.pass(&west)), (Some(0), None));
        assert_eq!((throttles.pass(&east), throttles.pass(&east)), (Some(0), None));
        tokio::time::advance(PAUSE).await;
        assert_eq!((throttles.pass(&west), throttles.pass(&west)), (Some(1), None));
    }
}
