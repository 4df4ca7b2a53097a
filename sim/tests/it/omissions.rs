//! Each rule is needed: without it, a promise is broken within 500 seeds.

use forewarn_sim::{Omission, Violation, run, seeds};

/// Seeds within which an omission must be noticed.
const SEEDS: u64 = 500;

/// The first seed that notices an omission.
fn assert_noticed(omission: Omission) -> Violation {
    let violation = (1..=SEEDS).find_map(|seed| run(seed, Some(omission)).err());
    let violation = violation.unwrap_or_else(|| panic!("{omission:?} is not noticed within {SEEDS} seeds"));
    println!("{omission:?}: seed {}, {}", violation.seed, violation.what);
    *violation
}

#[test]
fn rule_1_without_the_comparison_of_the_head_a_number_is_written_twice() {
    let violation = assert_noticed(Omission::CommitComparison);
    let report = seeds::report(&violation);
    assert!(report.contains(&format!("cargo xtask sim --from {} --seeds 1", violation.seed)), "{report}");
    assert!(report.contains("sends batch"), "{report}");
}

#[test]
fn rule_2_without_repetition_a_durable_batch_counts_as_lost() {
    assert_noticed(Omission::RepeatUntilKnown);
}

#[test]
fn rule_3_without_the_comparison_of_a_takeover_the_head_goes_back() {
    assert_noticed(Omission::TakeoverComparison);
}

#[test]
fn rule_3_without_the_log_after_a_takeover_copies_differ() {
    assert_noticed(Omission::LogAfterTakeover);
}

#[test]
fn rule_4_without_fencing_two_servers_decide() {
    assert_noticed(Omission::Fencing);
}

#[test]
fn rule_5_without_the_commit_before_the_answer_decisions_are_lost() {
    assert_noticed(Omission::CommitBeforeAnswer);
}

#[test]
fn rule_6_without_notice_from_the_readable_event_an_event_starts_early() {
    let violation = assert_noticed(Omission::NoticeFromReadable);
    assert!(violation.what.contains("ms after Preempt was readable"), "{}", violation.what);
}

#[test]
fn rule_6_without_the_hold_of_the_last_batch_an_event_starts_early() {
    let violation = assert_noticed(Omission::HoldOfLastBatch);
    assert!(violation.what.contains("was readable"), "{}", violation.what);
}

#[test]
fn rule_7_without_the_action_log_an_action_has_two_effects() {
    let violation = assert_noticed(Omission::ActionLog);
    assert!(violation.what.contains("second effect"), "{}", violation.what);
}

#[test]
fn followers_without_the_number_of_the_owner_show_a_time_that_moves() {
    let violation = assert_noticed(Omission::ShownByOwner);
    assert!(violation.what.contains("with a time that differs"), "{}", violation.what);
}

#[test]
fn followers_that_show_everything_at_their_start_show_a_time_that_moves() {
    let violation = assert_noticed(Omission::DocumentsAfterStart);
    assert!(violation.what.contains("with a time that differs"), "{}", violation.what);
}

#[test]
fn clocks_without_the_anchor_an_event_starts_early() {
    let violation = assert_noticed(Omission::ClockAnchor);
    assert!(violation.what.contains("was readable"), "{}", violation.what);
}
