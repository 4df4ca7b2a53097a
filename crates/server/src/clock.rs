//! The clock: real, or virtual.
//!
//! A virtual clock runs at a chosen speed, can be frozen, and can be set forward; both clocks of the rules are then one. A
//! reader takes the time without a lock.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use forewarn_control::shared::Boot;
use forewarn_lifecycle::{Now, Steady, Timestamp};

use crate::boot;

/// Where a virtual clock stands still: 9990. Documents end with 9999, and what is announced must fit in between.
pub const CLOCK_END: Timestamp = Timestamp::from_millis(253_086_768_000_000);

/// Which clock a server runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The machine's own.
    Real,
    /// One that its operator sets and drives.
    Virtual,
}

/// How fast a virtual clock runs: that many seconds a second; 0 is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(pub u32);

/// What clock a server is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockPlan {
    /// The machine's own.
    Real,
    /// One that its operator sets and drives.
    Virtual {
        /// What it shows at first, unless it has shown more before; `None`: what it has shown before, or else the time of day.
        start: Option<Timestamp>,
        /// How fast it runs.
        speed: Speed,
    },
}

/// The time, for readers.
#[derive(Clone, Debug)]
pub struct Clock {
    kind: Kind,
    face: Arc<ArcSwap<Face>>,
}

/// Where the clock stood at some instant, and how fast it goes since.
#[derive(Clone, Copy, Debug)]
struct Face {
    stood: Now,
    /// The time since the computer booted, then.
    since: Duration,
    speed: Speed,
}

impl Clock {
    /// The machine's own clock. The steady one goes on from there.
    #[must_use]
    pub fn real(steady: Steady) -> Self {
        let stood = Now { wall: wall(), steady };
        Self::new(Kind::Real, stood, Speed(1))
    }

    /// A virtual clock that stands at that time and runs at that speed.
    #[must_use]
    pub fn virtual_at(wall: Timestamp, speed: Speed) -> Self {
        Self::new(Kind::Virtual, Now::at_millis(wall.millis()), speed)
    }

    /// The clock of a plan that has shown nothing yet.
    #[must_use]
    pub fn new_for(plan: ClockPlan) -> Self {
        match plan {
            ClockPlan::Real => Self::real(Steady::START),
            ClockPlan::Virtual { start, speed } => {
                Self::virtual_at(start.unwrap_or_else(whole_second), speed)
            }
        }
    }

    /// The clock of a plan, which has shown that before.
    #[must_use]
    pub(crate) fn resumed(plan: ClockPlan, shown: Now, boot: Option<Boot>) -> Self {
        match plan {
            ClockPlan::Real => Self::real(resumed(shown.steady, boot, boot::id(), boot::elapsed())),
            ClockPlan::Virtual { start, speed } => {
                Self::virtual_at(start.unwrap_or(shown.wall).max(shown.wall), speed)
            }
        }
    }

    fn new(kind: Kind, stood: Now, speed: Speed) -> Self {
        let face = Face { stood, since: boot::elapsed(), speed };
        Self { kind, face: Arc::new(ArcSwap::from_pointee(face)) }
    }

    /// Which clock it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What both clocks show.
    #[must_use]
    pub fn now(&self) -> Now {
        let face = self.face.load();
        let elapsed = boot::elapsed().saturating_sub(face.since);
        match self.kind {
            Kind::Real => Now { wall: wall(), steady: face.stood.steady.plus(elapsed) },
            Kind::Virtual => {
                let left = CLOCK_END.since(face.stood.wall);
                later(face.stood, elapsed.saturating_mul(face.speed.0).min(left))
            }
        }
    }

    /// How fast it runs.
    #[must_use]
    pub fn speed(&self) -> Speed {
        self.face.load().speed
    }

    /// How the steady clock goes with this boot of the computer; nothing, for a virtual clock, or where nobody can tell.
    pub(crate) fn boot(&self) -> Option<Boot> {
        match self.kind {
            Kind::Real => {
                let Face { stood, since, .. } = **self.face.load();
                let id = boot::id()?;
                let (steady, since) = (stood.steady.millis(), u64::try_from(since.as_millis()).ok()?);
                Some(Boot { id, offset_millis: i64::try_from(i128::from(steady) - i128::from(since)).ok()? })
            }
            Kind::Virtual => None,
        }
    }

    /// How long it takes, in real time, until that much has passed on this clock; never, if it is frozen.
    #[must_use]
    pub fn real_time_for(&self, span: Duration) -> Option<Duration> {
        let Speed(speed) = self.speed();
        (speed > 0).then(|| (span / speed).saturating_add(Duration::from_millis(1)))
    }

    /// Goes on from there, at that speed. Only the driver does this, and only to a virtual clock.
    pub(crate) fn set(&self, stood: Now, speed: Speed) {
        self.face.store(Arc::new(Face { stood, since: boot::elapsed(), speed }));
    }
}

/// Where the steady clock goes on: the time that has passed counts if the computer has not been restarted; else nothing does.
fn resumed(shown: Steady, kept: Option<Boot>, id: Option<[u8; 16]>, elapsed: Duration) -> Steady {
    let (Some(kept), Some(id)) = (kept, id) else { return shown };
    let elapsed = i128::try_from(elapsed.as_millis()).unwrap_or(0);
    let counted = u64::try_from(elapsed + i128::from(kept.offset_millis)).unwrap_or(0);
    if kept.id == id { shown.max(Steady::from_millis(counted)) } else { shown }
}

/// A moment, and everything on both clocks, later by `span`.
pub(crate) fn later(now: Now, span: Duration) -> Now {
    Now { wall: now.wall.plus(span), steady: now.steady.plus(span) }
}

/// The time of day, down to a whole second: a virtual clock that starts there shows what documents can show.
pub(crate) fn whole_second() -> Timestamp {
    Timestamp::from_millis(wall().seconds() * 1_000)
}

/// The time of day.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans() -> impl Strategy<Value = u64> {
        // Up to thirty years.
        prop_oneof![0..100_000_u64, 0..1_000_000_000_000_u64]
    }

    proptest! {
        /// The steady clock stands at `stood` when the computer has run for `since`, and shows `shown` at last. The server is
        /// started again when the computer has run for `elapsed`, since this boot or another one.
        #[test]
        fn a_steady_clock_never_goes_back_and_counts_no_time_that_has_not_passed(
            stood in spans(), since in spans(), ran in spans(), off in spans(), same in any::<bool>(), known in any::<bool>(),
        ) {
            let offset_millis = i64::try_from(stood).unwrap() - i64::try_from(since).unwrap();
            let shown = Steady::from_millis(stood + ran);
            let kept = known.then_some(Boot { id: [1; 16], offset_millis });
            let id = Some(if same { [1; 16] } else { [2; 16] });
            // After another boot the computer has run for as long as it was off, or for less.
            let elapsed = Duration::from_millis(if same { since + ran + off } else { off });
            let resumed = resumed(shown, kept, id, elapsed);
            prop_assert!(resumed >= shown);
            let counted = if same && known { off } else { 0 };
            prop_assert_eq!(resumed, shown.plus(Duration::from_millis(counted)));
        }

        /// Whatever the plan: what comes is not before what was.
        #[test]
        fn a_virtual_clock_never_goes_back(shown in spans(), start in proptest::option::of(spans()), speed in 0..100_u32) {
            let shown = Now::at_millis(i64::try_from(shown).unwrap());
            let start = start.map(|start| Timestamp::from_millis(i64::try_from(start).unwrap()));
            let now = Clock::resumed(ClockPlan::Virtual { start, speed: Speed(speed) }, shown, None).now();
            prop_assert!(now.wall >= shown.wall && now.steady >= shown.steady);
            prop_assert!(start.is_none_or(|start| now.wall >= start));
        }
    }

    #[test]
    fn a_frozen_clock_stands_and_a_set_one_goes_on_from_there() {
        let clock = Clock::virtual_at(Timestamp::from_millis(5_000), Speed(0));
        assert_eq!(clock.now(), Now::at_millis(5_000));
        assert_eq!(clock.real_time_for(Duration::from_secs(1)), None);
        clock.set(later(clock.now(), Duration::from_secs(2)), Speed(60));
        assert!(clock.now().wall.millis() >= 7_000);
        assert_eq!(clock.real_time_for(Duration::from_secs(60)), Some(Duration::from_millis(1_001)));
        assert_eq!((clock.kind(), clock.speed()), (Kind::Virtual, Speed(60)));
    }

    #[test]
    fn a_virtual_clock_that_shows_the_time_of_day_starts_on_a_whole_second() {
        // Whatever the moment is, some of these would not be.
        for _ in 0..20 {
            let clock = Clock::new_for(ClockPlan::Virtual { start: None, speed: Speed(0) });
            assert_eq!(clock.now().wall.millis() % 1_000, 0);
        }
        let start = Some(Timestamp::from_millis(1_500));
        let clock = Clock::new_for(ClockPlan::Virtual { start, speed: Speed(0) });
        assert_eq!(clock.now().wall.millis(), 1_500, "a start that was chosen stays");
    }

    #[test]
    fn a_real_clock_goes_on_from_where_the_steady_one_stood() {
        let clock = Clock::real(Steady::from_millis(77));
        assert!(
            clock.now().steady >= Steady::from_millis(77) && clock.now().wall.millis() > 1_700_000_000_000
        );
    }
}
