//! Locks per hook: two events may need the same hook at once. Work that records the earlier state runs for one event at
//! a time, because the second run would otherwise record the state that the first has just changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The locks of all hooks that were ever waited for; their number is bounded by the settings.
#[derive(Debug, Default)]
pub(super) struct HookLocks(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// Holds the lock of a hook until dropped.
#[derive(Debug)]
pub(super) struct HookLock {
    _held: OwnedMutexGuard<()>,
}

impl HookLocks {
    /// Waits for the lock of a hook, first come, first served.
    pub(super) async fn wait(&self, hook: &str) -> HookLock {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(hook.to_owned()).or_default())
        };
        HookLock { _held: lock.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use crate::hooks::fixtures::{job, never_stop, runtime};
    use crate::hooks::{TouchWork, Work};
    use forewarn_agent_core::Phase;
    use std::time::Duration;

    #[tokio::test(flavor = "current_thread")]
    async fn waiting_for_a_lock_respects_the_time_limit() {
        let (runtime, folder) = runtime();
        let path = folder.path().join("draining");
        let work = Work::Touch(TouchWork { path: path.clone(), contents: Default::default() });
        let mut this = job("flag", Phase::Scheduled);
        let lock = runtime.hook_locks.wait("flag").await;
        let other = job("other", Phase::Scheduled);
        assert_eq!(
            work.perform(&other, &runtime, never_stop()).await.result,
            Ok(()),
            "each hook has its own lock"
        );
        std::fs::remove_file(&path).unwrap();
        this.limit = Duration::from_millis(5);
        let late = work.perform(&this, &runtime, never_stop()).await;
        assert_eq!(late.result, Err("timed out after 5 ms".to_owned()));
        assert!(late.memory.is_none() && !path.exists());
        drop(lock);
        this.limit = Duration::from_secs(20);
        assert_eq!(work.perform(&this, &runtime, never_stop()).await.result, Ok(()));
    }
}
