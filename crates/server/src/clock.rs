//! The clock: real, accelerated, or virtual.
//!
//! A virtual clock runs at a chosen speed, can be frozen, and can be set forward; both clocks of the rules are then
//! one. An accelerated clock is that of a realm in tests: a function of the real clocks, so that all servers agree. A
//! reader takes the time without a lock.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use forewarn_control::shared::Boot;
use forewarn_lifecycle::{Now, Steady, Timestamp};

use crate::boot;

/// End of a virtual clock: year 9990. Documents end with 9999, and announcements must fit in between.
pub const CLOCK_END: Timestamp = Timestamp::from_millis(253_086_768_000_000);

/// Kind of the clock of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    Real,
    /// Real clocks times a speed: the wall clock counts from `origin`, which is the same on all servers of a realm.
    Accelerated {
        origin: Timestamp,
    },
    /// A clock that an operator sets.
    Virtual,
}

/// Speed of a virtual clock, in seconds per second; 0 is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(pub u32);

/// Configuration of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockPlan {
    Real,
    /// A clock that an operator sets.
    Virtual {
        /// Initial time, unless the clock has shown a later one. `None`: the last time it has shown, or else the
        /// system time.
        start: Option<Timestamp>,
        speed: Speed,
    },
}

/// A clock, shared by its readers.
#[derive(Clone, Debug)]
pub struct Clock {
    kind: ClockKind,
    face: Arc<ArcSwap<Face>>,
    /// Milliseconds by which a steady clock of this view is ahead of that of the process.
    shift: i64,
}

/// Time at some instant, and the speed since.
#[derive(Clone, Copy, Debug)]
struct Face {
    stood: Now,
    /// Uptime at that instant.
    since: Duration,
    speed: Speed,
}

impl Clock {
    /// The system clock; the steady clock continues from `steady`.
    #[must_use]
    pub fn real(steady: Steady) -> Self {
        let stood = Now { wall: wall(), steady };
        Self::new(ClockKind::Real, stood, Speed(1))
    }

    /// The clock of a realm whose clock is accelerated since `origin`; the steady clock starts with the time of day.
    #[must_use]
    pub fn accelerated(origin: Timestamp, speed: Speed) -> Self {
        let wall = accelerated(wall(), origin, speed);
        let steady = Steady::from_millis(u64::try_from(wall.millis()).unwrap_or(0));
        Self::new(ClockKind::Accelerated { origin }, Now { wall, steady }, speed)
    }

    /// A virtual clock with a time and a speed.
    #[must_use]
    pub fn virtual_at(wall: Timestamp, speed: Speed) -> Self {
        Self::new(ClockKind::Virtual, Now::at_millis(wall.millis()), speed)
    }

    /// The clock of a new server.
    #[must_use]
    pub fn new_for(plan: ClockPlan) -> Self {
        match plan {
            ClockPlan::Real => Self::real(Steady::START),
            ClockPlan::Virtual { start, speed } => {
                Self::virtual_at(start.unwrap_or_else(whole_second), speed)
            }
        }
    }

    /// The clock of a server that continues from `shown`.
    #[must_use]
    pub(crate) fn resumed(plan: ClockPlan, shown: Now, boot: Option<Boot>) -> Self {
        match plan {
            ClockPlan::Real => Self::real(resumed(shown.steady, boot, boot::id(), boot::elapsed())),
            ClockPlan::Virtual { start, speed } => {
                Self::virtual_at(start.unwrap_or(shown.wall).max(shown.wall), speed)
            }
        }
    }

    fn new(kind: ClockKind, stood: Now, speed: Speed) -> Self {
        let face = Face { stood, since: boot::elapsed(), speed };
        Self { kind, face: Arc::new(ArcSwap::from_pointee(face)), shift: 0 }
    }

    #[must_use]
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The time of both clocks.
    #[must_use]
    pub fn now(&self) -> Now {
        let face = self.face.load();
        let elapsed = boot::elapsed().saturating_sub(face.since);
        match self.kind {
            ClockKind::Real => {
                Now { wall: wall(), steady: shifted(face.stood.steady.plus(elapsed), self.shift) }
            }
            ClockKind::Accelerated { origin } => {
                let steady = face.stood.steady.plus(elapsed.saturating_mul(face.speed.0));
                let wall = accelerated(wall(), origin, face.speed);
                Now { wall, steady: shifted(steady, self.shift) }
            }
            ClockKind::Virtual => {
                let left = CLOCK_END.since(face.stood.wall);
                later(face.stood, elapsed.saturating_mul(face.speed.0).min(left))
            }
        }
    }

    /// The same clock, whose steady part shows `steady` now: that of a cluster which continues from the clock of another
    /// server.
    pub(crate) fn continued_from(&self, steady: Steady) -> Self {
        let process = Self { shift: 0, ..self.clone() }.now().steady;
        let shift = i128::from(steady.millis()) - i128::from(process.millis());
        Self { shift: i64::try_from(shift).unwrap_or(0), ..self.clone() }
    }

    /// Milliseconds by which the steady clock is ahead of that of the process.
    pub(crate) fn shift(&self) -> i64 {
        self.shift
    }

    #[must_use]
    pub fn speed(&self) -> Speed {
        self.face.load().speed
    }

    /// Uptime of the computer as the steady clock counts it: the base of [`Self::boot`].
    pub(crate) fn uptime(&self) -> Duration {
        self.counted(boot::elapsed())
    }

    /// A span of real time, on the steady clock.
    fn counted(&self, real: Duration) -> Duration {
        match self.kind {
            ClockKind::Real | ClockKind::Virtual => real,
            ClockKind::Accelerated { .. } => real.saturating_mul(self.speed().0),
        }
    }

    /// Offset of the steady clock in this boot. None for a virtual clock, or if the boot id is unknown.
    pub(crate) fn boot(&self) -> Option<Boot> {
        match self.kind {
            ClockKind::Real | ClockKind::Accelerated { .. } => {
                let Face { stood, since, .. } = **self.face.load();
                let id = boot::id()?;
                let steady = shifted(stood.steady, self.shift).millis();
                let since = u64::try_from(self.counted(since).as_millis()).ok()?;
                Some(Boot { id, offset_millis: i64::try_from(i128::from(steady) - i128::from(since)).ok()? })
            }
            ClockKind::Virtual => None,
        }
    }

    /// Real time until a span has passed on this clock. None if it is frozen.
    #[must_use]
    pub fn real_time_for(&self, span: Duration) -> Option<Duration> {
        let Speed(speed) = self.speed();
        (speed > 0).then(|| (span / speed).saturating_add(Duration::from_millis(1)))
    }

    /// Sets time and speed of a virtual clock. Only the driver of the clock does this, or the supervisor while it holds
    /// that driver: only then the clock may go back.
    pub(crate) fn set(&self, stood: Now, speed: Speed) {
        self.face.store(Arc::new(Face { stood, since: boot::elapsed(), speed }));
    }
}

/// The steady time after a restart: time that has passed counts if the computer has not rebooted.
fn resumed(shown: Steady, kept: Option<Boot>, id: Option<[u8; 16]>, elapsed: Duration) -> Steady {
    let (Some(kept), Some(id)) = (kept, id) else { return shown };
    let elapsed = i128::try_from(elapsed.as_millis()).unwrap_or(0);
    let counted = u64::try_from(elapsed + i128::from(kept.offset_millis)).unwrap_or(0);
    if kept.id == id { shown.max(Steady::from_millis(counted)) } else { shown }
}

/// A time of the steady clock of the process, as a view with a shift shows it.
pub(crate) fn shifted(steady: Steady, shift: i64) -> Steady {
    Steady::from_millis(steady.millis().saturating_add_signed(shift))
}

/// The time of an accelerated clock at a real one: `origin + (real - origin) × speed`, within the range of a clock.
fn accelerated(real: Timestamp, origin: Timestamp, speed: Speed) -> Timestamp {
    let passed = i128::from(real.millis()) - i128::from(origin.millis());
    let millis = i128::from(origin.millis()) + passed * i128::from(speed.0);
    let end = i128::from(CLOCK_END.millis());
    Timestamp::from_millis(i64::try_from(millis.clamp(0, end)).unwrap_or(0))
}

/// Both clocks, later by `span`.
pub(crate) fn later(now: Now, span: Duration) -> Now {
    Now { wall: now.wall.plus(span), steady: now.steady.plus(span) }
}

/// System time in whole seconds: a virtual clock that starts there shows times that documents can show.
pub(crate) fn whole_second() -> Timestamp {
    Timestamp::from_millis(wall().seconds() * 1_000)
}

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
        /// The steady clock stands at `stood` when the computer has run for `since`, and shows `shown` at last. The
        /// server is started again when the computer has run for `elapsed`, since this boot or another one.
        /// promise: N4
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

        /// A virtual clock never goes back, whatever its configuration.
        /// promise: N4
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
        assert_eq!((clock.kind(), clock.speed()), (ClockKind::Virtual, Speed(60)));
    }

    /// promise: N4
    #[test]
    fn a_virtual_clock_that_shows_the_time_of_day_starts_on_a_whole_second() {
        // Repeated: a single read might hit a whole second by chance.
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

    /// promise: N4
    #[test]
    fn an_accelerated_clock_is_a_function_of_the_real_one() {
        let (origin, at) = (Timestamp::from_millis(1_000_000), Timestamp::from_millis);
        assert_eq!(accelerated(at(1_000_000), origin, Speed(60)), origin);
        assert_eq!(accelerated(at(1_002_000), origin, Speed(60)), at(1_120_000));
        assert_eq!(
            accelerated(at(999_000), origin, Speed(60)),
            at(940_000),
            "a clock behind that of the creator"
        );
        assert_eq!(accelerated(at(i64::MAX), origin, Speed(1_000)), CLOCK_END);
        assert_eq!(accelerated(at(0), origin, Speed(1_000)), at(0));
        let clock = Clock::accelerated(wall(), Speed(1_000));
        let (before, real) = (clock.now(), boot::elapsed());
        while boot::elapsed() < real + Duration::from_millis(5) {
            std::thread::yield_now();
        }
        let after = clock.now();
        assert!(after.steady.since(before.steady) >= Duration::from_secs(5), "{before:?} {after:?}");
        assert_eq!(clock.real_time_for(Duration::from_secs(60)), Some(Duration::from_millis(61)));
    }

    /// The successor on the same computer counts the time that has passed, and no more.
    /// promise: N4
    #[test]
    fn the_boot_of_an_accelerated_clock_gives_its_steady_time() {
        for speed in [1, 60, 1_000] {
            let clock = Clock::accelerated(wall(), Speed(speed));
            let clock = clock.continued_from(Steady::from_millis(77_000));
            let Some(boot) = clock.boot() else { return };
            let counted = |uptime: Duration| {
                let millis = i128::try_from(uptime.as_millis()).unwrap() + i128::from(boot.offset_millis);
                u64::try_from(millis).unwrap()
            };
            // Milliseconds of real time are rounded before they are multiplied.
            let rounding = 2 * u64::from(speed);
            let before = counted(clock.uptime());
            let shown = clock.now().steady.millis();
            let after = counted(clock.uptime());
            assert!(
                before <= shown + rounding && shown <= after + rounding,
                "{speed}: {before} {shown} {after}"
            );
        }
    }
}
