//! How long work may take, and that it may be told to stop.

use std::time::Duration;

use forewarn_types::show_duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long programs that are asked to end have before they are ended.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The time that work has.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    limit: Duration,
    until: Instant,
    stop: watch::Receiver<bool>,
}

impl Bounds {
    pub(super) fn new(limit: Duration, stop: watch::Receiver<bool>) -> Self {
        let now = Instant::now();
        // What cannot be counted is as good as a century.
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_hours(876_000));
        Self { limit, until, stop }
    }

    /// How much is left.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// The same word to stop, and no limit.
    pub(super) fn unlimited(self) -> Self {
        Self::new(Duration::MAX, self.stop)
    }

    /// Waits until the time is up, and says why it is.
    pub(super) async fn over(&mut self) -> String {
        tokio::select! {
            () = told(&mut self.stop) => "it was told to stop".to_owned(),
            () = sleep_until(self.until) => format!("it has not ended within {}", shown(self.limit)),
        }
    }

    /// Does something while there is time.
    pub(super) async fn around<T>(
        mut self,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            result = work => result,
            why = self.over() => Err(why),
        }
    }
}

/// Waits until it is said; for ever, if nobody is left to say it.
async fn told(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A length of time for people: seconds and larger as settings have it, below that in milliseconds.
///
/// Of a limit of two seconds some microseconds are gone when it begins to count: the nearest second is what was meant.
pub(super) fn shown(span: Duration) -> String {
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
        let shown = |millis| super::shown(Duration::from_millis(millis));
        assert_eq!([shown(1_999), shown(2_000), shown(80), shown(299_998)], ["2s", "2s", "80 ms", "5m"]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn time_is_up_by_the_limit_or_by_word() {
        let (tell, stop) = watch::channel(false);
        let late = Bounds::new(Duration::from_millis(5), stop.clone())
            .around(std::future::pending::<Result<(), _>>())
            .await;
        assert_eq!(late, Err("it has not ended within 5 ms".to_owned()));
        tell.send(true).unwrap();
        let stopped =
            Bounds::new(Duration::MAX, stop.clone()).around(std::future::pending::<Result<(), _>>()).await;
        assert_eq!(stopped, Err("it was told to stop".to_owned()));
        let done = Bounds::new(Duration::ZERO, stop).around(async { Ok(()) }).await;
        assert_eq!(done, Ok(()), "what is done is done");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn nobody_left_to_say_it_is_not_a_word() {
        let (tell, stop) = watch::channel(false);
        drop(tell);
        let late =
            Bounds::new(Duration::from_millis(5), stop).around(std::future::pending::<Result<(), _>>()).await;
        assert!(late.unwrap_err().contains("within"));
    }
}
