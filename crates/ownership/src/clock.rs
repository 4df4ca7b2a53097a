//! The steady clock of a stream, which continues from owner to owner.
//!
//! The head of a stream holds the reading of the clock at the last commit. The next owner continues from there. Time
//! that has passed since counts only if the computer is the same and has not rebooted: then its uptime measures it. A
//! clock may be late, and with it an event; it is never early.

use std::time::Duration;

use forewarn_types::Steady;

use crate::ids::{BootId, Uptime};

/// The age at which the clock of a head is refreshed, in milliseconds.
pub const REFRESH_MILLIS: u64 = 5_000;

/// The relation of a stream's clock to the uptime of one computer in one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockAnchor {
    /// The boot in which the relation holds.
    pub boot: BootId,
    /// The steady time less the uptime, in milliseconds.
    pub offset_millis: i64,
}

/// The clock of a stream as its head stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeadClock {
    /// The steady time of the commit that wrote the head.
    pub steady: Steady,
    /// The anchor of the owner. None if it does not know its boot.
    pub anchor: Option<ClockAnchor>,
}

/// The timers of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamTimers {
    /// Nothing waits for the steady clock.
    Idle,
    /// Something is due at a steady time.
    Running,
}

impl HeadClock {
    /// The time at which the owner should refresh the head, if it has not committed until then.
    #[must_use]
    pub fn refresh_at(&self, timers: StreamTimers) -> Option<Steady> {
        match timers {
            StreamTimers::Idle => None,
            StreamTimers::Running => Some(self.steady.plus(Duration::from_millis(REFRESH_MILLIS))),
        }
    }
}

/// The steady time at which a new owner continues: never before the clock of the head, and without time that has not
/// passed.
#[must_use]
pub fn successor_clock(head: &HeadClock, boot: Option<BootId>, uptime: Uptime) -> Steady {
    let (Some(anchor), Some(boot)) = (head.anchor, boot) else { return head.steady };
    if anchor.boot != boot {
        return head.steady;
    }
    let counted = i128::from(uptime.millis()) + i128::from(anchor.offset_millis);
    head.steady.max(Steady::from_millis(u64::try_from(counted).unwrap_or(0)))
}

/// The running clock of a stream at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamClock {
    boot: Option<BootId>,
    /// The steady time less the uptime, in milliseconds.
    offset_millis: i64,
}

impl StreamClock {
    /// The clock of a new stream.
    #[must_use]
    pub fn new(boot: Option<BootId>, uptime: Uptime) -> Self {
        Self::from_reading(boot, Steady::START, uptime)
    }

    /// The clock of a new owner, which continues from the head.
    #[must_use]
    pub fn resumed(head: &HeadClock, boot: Option<BootId>, uptime: Uptime) -> Self {
        Self::from_reading(boot, successor_clock(head, boot, uptime), uptime)
    }

    fn from_reading(boot: Option<BootId>, steady: Steady, uptime: Uptime) -> Self {
        let offset = i128::from(steady.millis()) - i128::from(uptime.millis());
        Self { boot, offset_millis: i64::try_from(offset).unwrap_or(i64::MAX) }
    }

    /// The steady time at an uptime of this computer.
    #[must_use]
    pub fn at(&self, uptime: Uptime) -> Steady {
        Steady::from_millis(uptime.millis().saturating_add_signed(self.offset_millis))
    }

    /// The clock that a commit at an uptime of this computer writes into the head.
    #[must_use]
    pub fn head_clock(&self, uptime: Uptime) -> HeadClock {
        let offset_millis = self.offset_millis;
        let anchor = self.boot.map(|boot| ClockAnchor { boot, offset_millis });
        HeadClock { steady: self.at(uptime), anchor }
    }
}
