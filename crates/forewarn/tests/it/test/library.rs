//! Every story of the library with a small program that polls, and approves what it reads.

use std::sync::Mutex;

use forewarn_story::library::library;
use forewarn_testkit::CommandResult;

use super::{conclusion, run};

/// Stories that run at the same time.
const THREADS: usize = 4;

#[test]
fn a_program_that_polls_and_approves_passes_every_story_of_the_library() {
    let left = Mutex::new(library().iter());
    let failed = Mutex::new(Vec::new());
    let run_next = || {
        while let Some(scenario) = { left.lock().unwrap().next() } {
            let Some(result) = run(&format!("--story {}", scenario.name), "") else { return };
            if !has_passed(&result) {
                failed.lock().unwrap().push(format!("{}: {}\n{}", scenario.name, result.out, result.err));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(run_next);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn has_passed(result: &CommandResult) -> bool {
    result.code == Some(0) && conclusion(result).starts_with("PASSED: ")
}
