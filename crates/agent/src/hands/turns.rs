//! Turns: two events may want the same hook at once, and work that remembers how it has found things is done for one of them after
//! the other. The second would otherwise find what the first has just made of it, and take that for how it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Whose turn it is, for each hook that was ever waited for: as many as settings have, at most.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// A turn, for as long as this lives.
#[derive(Debug)]
pub(super) struct Turn {
    _held: OwnedMutexGuard<()>,
}

impl Turns {
    /// Waits for a turn at a hook; whoever came first has it first.
    pub(super) async fn wait(&self, hook: &str) -> Turn {
        let place = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(hook.to_owned()).or_default())
        };
        Turn { _held: place.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use crate::hands::samples::{go_on, hands, job};
    use crate::hands::{TouchWork, Work};
    use forewarn_agent_core::Phase;
    use std::time::Duration;

    #[tokio::test(flavor = "current_thread")]
    async fn who_waits_for_a_turn_waits_no_longer_than_there_is_time() {
        let (hands, folder) = hands();
        let path = folder.path().join("draining");
        let work = Work::Touch(TouchWork { path: path.clone(), contents: Default::default() });
        let mut this = job("flag", Phase::Scheduled);
        let turn = hands.turns.wait("flag").await;
        let other = job("other", Phase::Scheduled);
        assert_eq!(work.perform(&other, &hands, go_on()).await.result, Ok(()), "each hook has its own");
        std::fs::remove_file(&path).unwrap();
        this.limit = Duration::from_millis(5);
        let late = work.perform(&this, &hands, go_on()).await;
        assert_eq!(late.result, Err("it has not ended within 5 ms".to_owned()));
        assert!(late.memory.is_none() && !path.exists());
        drop(turn);
        this.limit = Duration::from_secs(20);
        assert_eq!(work.perform(&this, &hands, go_on()).await.result, Ok(()));
    }
}
