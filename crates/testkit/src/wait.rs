//! Waiting for a condition, with a deadline; and the progress of a process, to kill it at a random point of its work.

use std::time::{Duration, Instant};

/// Longer than anything takes on the slowest machine: a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Calls `look` until it gives something.
pub fn wait_until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_until_for(DEADLINE, what, look)
}

/// The same with another deadline, for slow programs.
pub fn wait_until_for<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads and writes of files that a process has done so far, over all of its threads.
pub fn io_calls(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).expect("the process exists");
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel counts calls");
        line.trim().parse::<u64>().expect("a number")
    };
    count("syscr:") + count("syscw:")
}

/// Waits until a process has done so many reads and writes, without a pause between two looks.
pub fn wait_for_io_calls(process: u32, calls: u64) {
    let begin = Instant::now();
    while io_calls(process) < calls {
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {calls} reads and writes");
        std::thread::yield_now();
    }
}
