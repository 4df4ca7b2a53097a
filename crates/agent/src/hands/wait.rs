//! Waiting: for caches to empty, for load balancers to look again.

use serde::Deserialize;

use forewarn_types::Span;

use super::Setting;
use super::bounds::Bounds;

/// `wait = "5s"`: waits so long, or for as long as there is time if that is shorter. Either way it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct WaitWork(pub(crate) Span);

impl WaitWork {
    #[expect(clippy::unnecessary_wraps, reason = "as all other work")]
    pub(super) fn check(self) -> Result<(), String> {
        Ok(())
    }

    pub(super) async fn perform(self, _: &Setting<'_>, bounds: Bounds) -> Result<(), String> {
        let Self(Span(wanted)) = self;
        let span = wanted.min(bounds.left());
        let mut bounds = bounds.unlimited();
        tokio::select! {
            () = tokio::time::sleep(span) => Ok(()),
            why = bounds.over() => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::hands::{Work, samples};
    use forewarn_agent_core::Phase;
    use std::time::Duration;
    use tokio::sync::watch;

    fn wait(text: &str) -> Work {
        Work::Wait(serde_json::from_str(text).unwrap())
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn it_waits_so_long_or_as_long_as_there_is_time() {
        let (hands, _folder) = samples::hands();
        let mut job = samples::job("wait", Phase::Scheduled);
        let begin = tokio::time::Instant::now();
        assert_eq!(wait("\"5s\"").perform(&job, &hands, samples::go_on()).await.result, Ok(()));
        assert_eq!(begin.elapsed().as_secs(), 5);
        job.limit = Duration::from_secs(3);
        assert_eq!(wait("\"1h\"").perform(&job, &hands, samples::go_on()).await.result, Ok(()));
        assert_eq!(begin.elapsed().as_secs(), 8);
        assert!(!wait("\"1h\"").undoes());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn it_can_be_told_to_stop() {
        let (hands, _folder) = samples::hands();
        let (tell, stop) = watch::channel(false);
        tell.send(true).unwrap();
        let ending = wait("\"1h\"").perform(&samples::job("wait", Phase::Scheduled), &hands, stop).await;
        assert_eq!(ending.result, Err("it was told to stop".to_owned()));
        assert_eq!(ending.memory, None);
    }
}
