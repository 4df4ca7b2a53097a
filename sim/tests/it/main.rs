//! Seeds of the simulator: no promise is broken, and each rule that is left out is noticed.

#![cfg(test)]

mod omissions;

use std::time::Instant;

use forewarn_sim::{Observations, history, run, seeds};

/// Seeds in all tests of this file together, unless `FOREWARN_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 500;
const PARTS: u64 = 4;

/// Runs one part of the seeds.
fn run_part(part: u64) {
    let seeds = std::env::var("FOREWARN_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let (first, after) = (1 + seeds * part / PARTS, 1 + seeds * (part + 1) / PARTS);
    let begin = Instant::now();
    let seen = match seeds::run_all(first..after) {
        Ok(seen) => seen,
        Err(violation) => panic!("{}", seeds::report(&violation)),
    };
    let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    println!("seeds {first} to {}: {} a second, {seen:?}", after - 1, (after - first) * 1_000 / millis);
    if after - first >= SEEDS / PARTS {
        assert_everything_happened(&seen);
    }
}

/// A simulation in which nothing happens would keep every promise.
fn assert_everything_happened(seen: &Observations) {
    let wanted = [
        ("batches", 3_000),
        ("faults", 500),
        ("effects", 300),
        ("answers", 1_000),
        ("reads", 300),
        ("takeovers", 100),
        ("moves", 20),
        ("moved announcements", 20),
        ("starts: notice over", 50),
        ("starts: approved", 50),
        ("starts: forced", 10),
    ];
    for (what, minimum) in wanted {
        let count = seen.get(what).copied().unwrap_or(0);
        assert!(count >= minimum, "only {count} {what}, at least {minimum} were expected");
    }
}

/// promise: N1, N3, N5, D1, D2, C2, C5
#[test]
fn the_first_quarter_of_the_seeds_breaks_no_promise() {
    run_part(0);
}

/// promise: N1, N3, N5, D1, D2, C2, C5
#[test]
fn the_second_quarter_of_the_seeds_breaks_no_promise() {
    run_part(1);
}

/// promise: N1, N3, N5, D1, D2, C2, C5
#[test]
fn the_third_quarter_of_the_seeds_breaks_no_promise() {
    run_part(2);
}

/// promise: N1, N3, N5, D1, D2, C2, C5
#[test]
fn the_last_quarter_of_the_seeds_breaks_no_promise() {
    run_part(3);
}

#[test]
fn seeds_that_failed_in_the_past_break_no_promise() {
    let known = seeds::known();
    assert!(!known.is_empty());
    if let Err(violation) = seeds::run_all(known) {
        panic!("{}", seeds::report(&violation));
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let steps = history(3, None);
    assert!(steps.len() > 100, "{} steps", steps.len());
    assert_eq!(steps, history(3, None));
    assert_ne!(steps, history(4, None));
    assert_eq!(run(3, None), run(3, None));
}
