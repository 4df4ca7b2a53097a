//! The driver on two clocks that know nothing of each other.

use std::time::Duration;

use forewarn_lifecycle::*;
use proptest::prelude::*;

use crate::clock::{Clock, Speed, later};
use crate::engine::Engine;

/// Two clocks that show something else.
fn start() -> Now {
    Now { wall: Timestamp::from_millis(1_767_225_600_000), steady: Steady::from_millis(77) }
}

const NOTICE: Duration = Duration::from_mins(15);
const TEN_YEARS_SECONDS: i64 = 10 * 365 * 86_400;

/// An engine on which one event is announced.
async fn announced() -> Engine {
    let clock = Clock::virtual_at(start().wall, Speed(0));
    clock.set(start(), Speed(0));
    let engine = Engine::pretending(Seed([5; 16]), clock);
    let name = |text| Name::new(text).expect("a name");
    let placement =
        Placement { host: HostId(0), update_domain: UpdateDomain(0), fault_domain: FaultDomain(0) };
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    for command in [
        Command::AdmitHost { name: name("h1"), zone: None },
        Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy },
        Command::Enrol(TenantId(0)),
        Command::Restart(MachineId(0)),
    ] {
        engine.submit(command).await.expect("a good command");
    }
    engine
}

/// Whether the event still waits, once everything that is due now is done.
async fn waits(engine: &Engine) -> bool {
    // The driver does what is due after the requests that have woken it.
    engine.look(|_| ()).await.expect("a running driver");
    let waits = engine.look(|state| {
        let events = state.cluster.tenant(TenantId(0)).expect("a tenant").events();
        events.iter().any(Event::is_scheduled)
    });
    waits.await.expect("a running driver")
}

/// How far the wall clock is set, and how much time passes on both.
fn steps() -> impl Strategy<Value = (i64, u64)> {
    let set = prop_oneof![
        3 => Just(0),
        2 => -2_000..2_000_i64,
        1 => Just(TEN_YEARS_SECONDS),
        1 => Just(-TEN_YEARS_SECONDS),
        1 => -TEN_YEARS_SECONDS..TEN_YEARS_SECONDS,
    ];
    (set, 0..400_u64)
}

proptest! {
    #[test]
    fn whatever_the_wall_clock_does_nothing_starts_early_and_nothing_is_lost(
        steps in proptest::collection::vec(steps(), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = announced().await;
            let due = later(start(), NOTICE);
            let mut now = start();
            let mut may_start = false;
            for (set, passed) in steps {
                let passed_millis = i64::try_from(passed * 1_000).unwrap();
                let wall = Timestamp::from_millis(now.wall.millis() + set * 1_000 + passed_millis);
                now = Now { wall, steady: now.steady.plus(Duration::from_secs(passed)) };
                engine.clock().set(now, Speed(0));
                may_start |= now.wall >= due.wall && now.steady >= due.steady;
                assert_eq!(waits(&engine).await, !may_start, "{now:?}");
            }
        });
    }
}
