//! The verdict is the same every time, on a computer that is busy with other things.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{conclusion, run};

/// Rounds of the next test; `FOREWARN_TEST_ROUNDS` sets another number.
const ROUNDS: usize = 5;

/// promise: X1
#[test]
fn the_verdict_does_not_depend_on_the_load_of_the_computer() {
    let rounds = std::env::var("FOREWARN_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(ROUNDS);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..cores {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let cases = [
            ("", 0, "PASSED: 1 event announced, 1 approved before the start"),
            ("--ignore", 1, "FAILED: svc did not approve E1 (Reboot); it was restarted at NotBefore"),
            ("--silent", 1, "FAILED: no machine polled, so nothing was tested"),
        ];
        let threads = cases.map(|(service, code, words)| {
            scope.spawn(move || {
                for round in 1..=rounds {
                    let Some(result) = run("--patience 3s --startup 5s", service) else { return };
                    let verdict = (result.code, conclusion(&result));
                    assert_eq!(verdict, (Some(code), words), "round {round} of {service:?}: {result:?}");
                }
            })
        });
        let ended = threads.map(std::thread::ScopedJoinHandle::join);
        is_over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|end| end.unwrap());
    });
}
