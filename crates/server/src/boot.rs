//! Uptime and boot id of the computer: the base of steady clocks.
//!
//! The uptime cannot be set, and includes suspension.

use std::time::Duration;

use forewarn_control::ControlState;
use forewarn_control::shared::Boot;
use rustix::time::{ClockId, clock_gettime};

/// File with the boot id on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Time since the computer booted.
pub(crate) fn elapsed() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Id of this boot. None where it is unknown: then every start counts as another boot.
pub(crate) fn id() -> Option<[u8; 16]> {
    parse(&std::fs::read_to_string(BOOT_ID).ok()?)
}

/// The boot of the computer that the streams have recorded last: the one by which the steady clock is latest.
pub(crate) fn latest(state: &ControlState) -> Option<Boot> {
    let of_clusters = state.clusters().filter_map(|(_, cluster)| cluster.boot());
    let boots = state.shared().boot().into_iter().chain(of_clusters);
    boots.max_by_key(|boot| boot.offset_millis)
}

fn parse(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_the_boot_does_not_go_back() {
        let before = elapsed();
        assert!(elapsed() >= before && before > Duration::ZERO);
    }

    #[test]
    fn boots_have_different_ids() {
        let one = parse("01020304-0506-0708-090a-0b0c0d0e0f10\n");
        assert_eq!(one, Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("01020304-0506-0708-090a-0b0c0d0e0f1x"), None);
        assert_eq!(id(), id());
    }
}
