//! The time limit of a hook, and requests to stop it.

use std::time::Duration;

use forewarn_types::show_duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The time limit of a hook, and its stop signal.
#[derive(Clone, Debug)]
pub(super) struct TimeLimit {
    limit: Duration,
    until: Instant,
    stop: watch::Receiver<bool>,
}

impl TimeLimit {
    pub(super) fn new(limit: Duration, stop: watch::Receiver<bool>) -> Self {
        let now = Instant::now();
        // A limit that overflows is as good as a century.
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_hours(876_000));
        Self { limit, until, stop }
    }

    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// The same stop signal without a time limit.
    pub(super) fn unlimited(self) -> Self {
        Self::new(Duration::MAX, self.stop)
    }

    /// Waits for the end of the time limit or for the stop signal, and returns the reason.
    pub(super) async fn wait(&mut self) -> String {
        tokio::select! {
            () = stop_requested(&mut self.stop) => "stopped on request".to_owned(),
            () = sleep_until(self.until) => format!("timed out after {}", format_limit(self.limit)),
        }
    }

    /// Runs a future within these bounds.
    pub(super) async fn run<T>(mut self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        tokio::select! {
            biased;
            result = work => result,
            reason = self.wait() => Err(reason),
        }
    }
}

/// Waits for the stop signal; for ever if its sender is gone.
async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Formats a duration: seconds and above as in the settings, below in milliseconds.
///
/// Some microseconds of a limit have passed when its clock starts, so the value is rounded to the nearest second.
pub(super) fn format_limit(span: Duration) -> String {
    let half = Duration::from_millis(500);
    if span < half {
        format!("{} ms", span.as_millis())
    } else {
        show_duration(Duration::from_secs(span.saturating_add(half).as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_shown_as_it_was_set() {
        let format_limit = |millis| super::format_limit(Duration::from_millis(millis));
        assert_eq!(
            [format_limit(1_999), format_limit(2_000), format_limit(80), format_limit(299_998)],
            ["2s", "2s", "80 ms", "5m"]
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn time_is_up_by_the_limit_or_by_word() {
        let (sender, stop) = watch::channel(false);
        let late = TimeLimit::new(Duration::from_millis(5), stop.clone())
            .run(std::future::pending::<Result<(), _>>())
            .await;
        assert_eq!(late, Err("timed out after 5 ms".to_owned()));
        sender.send(true).unwrap();
        let stopped =
            TimeLimit::new(Duration::MAX, stop.clone()).run(std::future::pending::<Result<(), _>>()).await;
        assert_eq!(stopped, Err("stopped on request".to_owned()));
        let done = TimeLimit::new(Duration::ZERO, stop).run(async { Ok(()) }).await;
        assert_eq!(done, Ok(()), "a result is kept");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_dropped_sender_is_not_a_stop_request() {
        let (sender, stop) = watch::channel(false);
        drop(sender);
        let late =
            TimeLimit::new(Duration::from_millis(5), stop).run(std::future::pending::<Result<(), _>>()).await;
        assert!(late.unwrap_err().contains("timed out"));
    }
}
