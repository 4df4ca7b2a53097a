//! Hooks that wait, for caches to empty or load balancers to check again.

use serde::Deserialize;

use forewarn_types::Span;

use super::HookCall;
use super::time_limit::TimeLimit;

/// `wait = "5s"`: waits for that time or until the time limit. Always succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct WaitWork(pub(crate) Span);

impl WaitWork {
    pub(super) async fn perform(self, _: &HookCall<'_>, time_limit: TimeLimit) -> Result<(), String> {
        let Self(Span(wanted)) = self;
        let span = wanted.min(time_limit.left());
        let mut time_limit = time_limit.unlimited();
        tokio::select! {
            () = tokio::time::sleep(span) => Ok(()),
            reason = time_limit.wait() => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::hooks::{Work, fixtures};
    use forewarn_agent_core::Phase;
    use std::time::Duration;
    use tokio::sync::watch;

    fn wait(text: &str) -> Work {
        Work::Wait(serde_json::from_str(text).unwrap())
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn it_waits_so_long_or_as_long_as_there_is_time() {
        let (runtime, _folder) = fixtures::runtime();
        let mut job = fixtures::job("wait", Phase::Scheduled);
        let begin = tokio::time::Instant::now();
        assert_eq!(wait("\"5s\"").perform(&job, &runtime, fixtures::never_stop()).await.result, Ok(()));
        assert_eq!(begin.elapsed().as_secs(), 5);
        job.limit = Duration::from_secs(3);
        assert_eq!(wait("\"1h\"").perform(&job, &runtime, fixtures::never_stop()).await.result, Ok(()));
        assert_eq!(begin.elapsed().as_secs(), 8);
        assert!(!wait("\"1h\"").undoes());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_can_be_stopped() {
        let (runtime, _folder) = fixtures::runtime();
        let (tell, stop) = watch::channel(false);
        tell.send(true).unwrap();
        let hook_outcome =
            wait("\"1h\"").perform(&fixtures::job("wait", Phase::Scheduled), &runtime, stop).await;
        assert_eq!(hook_outcome.result, Err("stopped on request".to_owned()));
        assert_eq!(hook_outcome.memory, None);
    }
}
