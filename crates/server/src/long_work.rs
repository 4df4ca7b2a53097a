//! Long computations, on threads of their own with a low priority: if all cores are busy, the threads that answer
//! requests go first.

use rustix::process::{getpriority_process, setpriority_process};

/// The priority of threads for long work, as `nice` counts it: the lowest. If the server itself keeps all cores busy,
/// they get a few percent of one.
const PRIORITY: i32 = 19;

/// Runs a long computation, and waits for it. A panic in it is one of the caller.
pub(crate) async fn run_long_work<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let working = tokio::task::spawn_blocking(move || {
        lower_priority();
        work()
    });
    match working.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Drops something that consists of many parts.
pub(crate) fn drop_in_background(large: impl Send + 'static) {
    tokio::task::spawn_blocking(move || {
        lower_priority();
        drop(large);
    });
}

/// Gives the thread a low priority, for good. In Linux the priority is one of a thread, not of its process.
pub(crate) fn lower_priority() {
    if getpriority_process(None).is_ok_and(|priority| priority < PRIORITY) {
        // Without it, others may wait longer.
        setpriority_process(None, PRIORITY).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_work_has_a_low_priority_and_its_caller_has_not() {
        let before = getpriority_process(None).unwrap();
        let (priority, answer) = run_long_work(|| (getpriority_process(None).unwrap(), 42)).await;
        assert_eq!((priority, answer), (before.max(PRIORITY), 42));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller() {
        let working = tokio::spawn(run_long_work(|| panic!("too long")));
        let panic = working.await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"too long"));
    }
}
