//! Verdicts on wall clocks.

use forewarn_ownership::{ClockVerdict, WallReading, verdict};
use proptest::prelude::*;

fn readings(ahead: &[i64]) -> Vec<WallReading> {
    ahead.iter().map(|ahead_millis| WallReading { ahead_millis: *ahead_millis, error_millis: 5 }).collect()
}

fn hold(by_millis: i64) -> ClockVerdict {
    ClockVerdict::Hold { by_millis }
}

#[test]
fn a_server_without_others_agrees() {
    assert_eq!(verdict(&[]), ClockVerdict::Agrees);
}

#[test]
fn a_difference_of_two_seconds_is_permitted_with_the_error_of_the_reading() {
    assert_eq!(verdict(&readings(&[1_995])), ClockVerdict::Agrees);
    assert_eq!(verdict(&readings(&[1_996])), hold(-1_996));
    assert_eq!(verdict(&readings(&[-1_995])), ClockVerdict::Agrees);
    assert_eq!(verdict(&readings(&[-1_996])), hold(1_996));
    let vague = WallReading { ahead_millis: 0, error_millis: 2_001 };
    assert_eq!(verdict(&[vague]), hold(0), "the difference is unknown");
}

#[test]
fn one_wrong_clock_among_three_holds_only_its_server() {
    assert_eq!(verdict(&readings(&[0, 90_000])), ClockVerdict::Agrees);
    assert_eq!(verdict(&readings(&[-90_000, -90_000])), hold(90_000));
    assert_eq!(verdict(&readings(&[-90_000, 90_000])), hold(90_000), "three clocks, and none agree");
}

#[test]
fn the_median_of_many_decides() {
    assert_eq!(verdict(&readings(&[-50_000, 0, 1, 2, 50_000])), ClockVerdict::Agrees);
    assert_eq!(verdict(&readings(&[0, 5_000, 5_000])), hold(-5_000));
    assert_eq!(verdict(&readings(&[i64::MIN, i64::MIN])), hold(i64::MAX));
}

proptest! {
    /// A server whose clock agrees with more than half of all servers, itself included, is never held; a server whose
    /// clock agrees with none is always held.
    #[test]
    fn a_majority_decides(good in prop::collection::vec(-900..900_i64, 0..5), bad in prop::collection::vec(5_000..90_000_i64, 0..5)) {
        let all = readings(&[good.clone(), bad.clone()].concat());
        if good.len() >= bad.len() {
            prop_assert_eq!(verdict(&all), ClockVerdict::Agrees);
        }
        if good.is_empty() && !bad.is_empty() {
            let is_held = matches!(verdict(&all), ClockVerdict::Hold { by_millis } if by_millis < 0);
            prop_assert!(is_held);
        }
    }
}
