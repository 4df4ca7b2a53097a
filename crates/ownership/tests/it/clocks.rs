//! The steady clock of a stream, from owner to owner.

use std::time::Duration;

use forewarn_ownership::{
    BootId, ClockAnchor, HeadClock, REFRESH_MILLIS, StreamClock, StreamTimers, Uptime, successor_clock,
};
use forewarn_types::Steady;
use proptest::prelude::*;

fn spans() -> impl Strategy<Value = u64> {
    // Up to thirty years.
    prop_oneof![0..100_000_u64, 0..1_000_000_000_000_u64]
}

fn uptime(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

fn head(steady: u64, anchor: Option<(u8, i64)>) -> HeadClock {
    let anchor = anchor.map(|(boot, offset_millis)| ClockAnchor { boot: BootId([boot; 16]), offset_millis });
    HeadClock { steady: Steady::from_millis(steady), anchor }
}

#[test]
fn time_counts_only_in_the_same_boot() {
    let boot = Some(BootId([1; 16]));
    let continued = |head: HeadClock, boot| successor_clock(&head, boot, uptime(900)).millis();
    assert_eq!(continued(head(500, Some((1, -100))), boot), 800, "300 ms have passed since the commit");
    assert_eq!(continued(head(500, Some((2, -100))), boot), 500, "another boot");
    assert_eq!(continued(head(500, None), boot), 500, "the former owner did not know its boot");
    assert_eq!(continued(head(500, Some((1, -100))), None), 500, "this server does not know its boot");
    assert_eq!(continued(head(500, Some((1, -600))), boot), 500, "never before the head");
    assert_eq!(continued(head(500, Some((1, i64::MIN))), boot), 500);
}

#[test]
fn a_head_is_refreshed_while_a_timer_runs() {
    let clock = head(700, None);
    assert_eq!(clock.refresh_at(StreamTimers::Idle), None);
    let at = Steady::from_millis(700 + REFRESH_MILLIS);
    assert_eq!(clock.refresh_at(StreamTimers::Running), Some(at));
}

#[test]
fn a_clock_without_a_boot_has_no_anchor() {
    let clock = StreamClock::new(None, uptime(100));
    assert_eq!(clock.head_clock(uptime(130)), head(30, None));
}

/// The time of one owner.
#[derive(Clone, Debug)]
struct OwnerRun {
    /// Servers 0 and 1 share a computer.
    server: u8,
    /// Time without an owner before.
    gap: u64,
    /// Times between commits.
    commits: Vec<u64>,
}

fn owner_runs() -> impl Strategy<Value = OwnerRun> {
    let commits = prop::collection::vec(0..10_000_u64, 1..5);
    (0..4_u8, 0..10_000_u64, commits).prop_map(|(server, gap, commits)| OwnerRun { server, gap, commits })
}

proptest! {
    /// The clock of a server that starts again, in the same boot or in another one.
    /// promise: N4
    #[test]
    fn a_successor_counts_no_time_that_has_not_passed(
        stood in spans(), since in spans(), ran in spans(), off in spans(), same in any::<bool>(),
    ) {
        let (boot, other) = (Some(BootId([1; 16])), Some(BootId([2; 16])));
        let clock = StreamClock::resumed(&head(stood, None), boot, uptime(since));
        let written = clock.head_clock(uptime(since + ran));
        prop_assert_eq!(written.steady.millis(), stood + ran);
        let (boot, counted) = if same { (boot, off) } else { (other, 0) };
        let resumed = successor_clock(&written, boot, uptime(since + ran + off));
        prop_assert_eq!(resumed.millis(), stood + ran + counted);
    }

    /// Over any number of owners on several hosts, the clock of the stream never goes back from one head to the next,
    /// and never overtakes the time since its creation.
    /// promise: N4
    #[test]
    fn a_stream_clock_is_never_early(booted in prop::array::uniform3(spans()), history in prop::collection::vec(owner_runs(), 1..8)) {
        let host = |server: u8| usize::from(server.saturating_sub(1));
        let boot = |server| Some(BootId([u8::try_from(host(server)).unwrap(); 16]));
        let mut real = 0;
        let up = |server, real: u64| uptime(booted[host(server)] + real);
        let mut head = StreamClock::new(boot(0), up(0, 0)).head_clock(up(0, 0));
        for OwnerRun { server, gap, commits } in history {
            real += gap;
            let clock = StreamClock::resumed(&head, boot(server), up(server, real));
            for wait in commits {
                real += wait;
                let next = clock.head_clock(up(server, real));
                prop_assert!(next.steady >= head.steady.plus(Duration::from_millis(wait)));
                prop_assert!(next.steady.millis() <= real);
                head = next;
            }
        }
    }
}
