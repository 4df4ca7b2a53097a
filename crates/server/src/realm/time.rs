//! Clocks of a realm.

use forewarn_ownership::{BootId, ClockAnchor, HeadClock};
use forewarn_realm::StreamTime;

use crate::clock::Clock;

/// The clocks of a commit.
pub(crate) fn stream_time(clock: &Clock) -> StreamTime {
    let now = clock.now();
    let anchor =
        clock.boot().map(|boot| ClockAnchor { boot: BootId(boot.id), offset_millis: boot.offset_millis });
    StreamTime { clock: HeadClock { steady: now.steady, anchor }, wall: now.wall }
}
