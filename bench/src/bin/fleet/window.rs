//! The time in which requests count, and their times.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use forewarn_bench::LoadResult;
use forewarn_bench::histogram::Histogram;

/// The pause of a client before it looks again.
const LOOK_INTERVAL: Duration = Duration::from_micros(200);

const WAITS: u8 = 0;
const OPEN: u8 = 1;
const OVER: u8 = 2;

/// The time in which the server does its work: not yet, now, or over.
#[derive(Debug, Default)]
pub(crate) struct Window(AtomicU8);

/// The result of one turn of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The request was sent in the window.
    Took(Duration),
    /// No request was sent in the window.
    Uncounted,
    /// The client has no further requests.
    Exhausted,
}

/// Times of requests of one kind.
pub(crate) struct RequestTimes {
    count: u64,
    latency: Histogram,
}

impl Window {
    pub(crate) fn open(&self) {
        self.0.store(OPEN, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.0.store(OVER, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
    }

    /// Waits until it opens. Returns false once it is over.
    fn wait(&self) -> bool {
        while self.0.load(Ordering::Acquire) == WAITS {
            std::thread::sleep(LOOK_INTERVAL);
        }
        self.is_open()
    }

    /// Takes turns, with a pause after each, while it is open.
    pub(crate) fn sample(
        &self,
        pause: Duration,
        mut turn: impl FnMut() -> LoadResult<Turn>,
    ) -> LoadResult<RequestTimes> {
        let mut times = RequestTimes { count: 0, latency: Histogram::new() };
        while self.wait() {
            match turn()? {
                Turn::Took(time) => times.add(time)?,
                Turn::Uncounted => {}
                Turn::Exhausted => break,
            }
            std::thread::sleep(pause);
        }
        Ok(times)
    }

    /// The time of a request, if it is sent in the window.
    pub(crate) fn timed(&self, request: impl FnOnce() -> LoadResult<()>) -> LoadResult<Turn> {
        if !self.is_open() {
            return Ok(Turn::Uncounted);
        }
        let begin = Instant::now();
        request()?;
        Ok(Turn::Took(begin.elapsed()))
    }
}

impl RequestTimes {
    fn add(&mut self, time: Duration) -> LoadResult<()> {
        self.count += 1;
        self.latency.add(u64::try_from(time.as_nanos())?);
        Ok(())
    }

    /// An object of the line that `cargo xtask bench fleet` reads.
    pub(crate) fn to_json(&self) -> String {
        let [p50, p99, max] = [50, 99, 100].map(|percent| self.latency.percentile(percent));
        format!(
            "{{\"count\":{},\"p50_nanoseconds\":{p50},\"p99_nanoseconds\":{p99},\"max_nanoseconds\":{max}}}",
            self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_in_the_window_count() {
        let window = Window::default();
        assert_eq!(window.timed(|| Ok(())).unwrap(), Turn::Uncounted);
        window.open();
        let mut turns = 0;
        let times = window.sample(Duration::ZERO, || {
            turns += 1;
            if turns == 5 {
                window.end();
            }
            window.timed(|| Ok(()))
        });
        assert_eq!(times.unwrap().count, 4);
        assert!(
            window.sample(Duration::ZERO, || Ok(Turn::Exhausted)).unwrap().to_json().contains("\"count\":0,")
        );
    }
}
