//! The promises of the rules, over random fleets and random histories.
//!
//! Each test looks at one promise; all share the same world and the same observer. `PROPTEST_CASES` makes the runs longer
//! or shorter.

#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test world may be blunt"
)]

use std::time::Duration;

use forewarn_lifecycle::*;
use forewarn_observer::ObservedCluster;
use forewarn_observer::promise::Promise;
use forewarn_observer::random::{Layout, RandomOperation, build, exposures, layouts, random_operations};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// The world after a history.
pub(crate) fn live(layout: &Layout, history: &[RandomOperation]) -> ObservedCluster {
    let mut world = build(layout);
    history.iter().for_each(|random_operation| world.happen(random_operation));
    world
}

fn kept(world: &ObservedCluster, promise: Promise) -> Result<(), TestCaseError> {
    let broken: Vec<_> = world.observer.broken.iter().filter(|(which, _)| *which == promise).collect();
    prop_assert!(broken.is_empty(), "{broken:#?}");
    Ok(())
}

/// Everything that stands in the way of an end is taken away, and time passes.
fn let_everything_end(world: &mut ObservedCluster) -> Result<(), TestCaseError> {
    world.submit(Command::Brake(Brake::Off)).expect("never refused");
    let hosts: Vec<_> = world.cluster.hosts().map(|(id, _)| id).collect();
    for host in hosts {
        // A host does not recover while it is being fenced.
        drop(world.submit(Command::FailFencedHost(host)));
        world.submit(Command::RecoverHost(host)).expect("a known host that is not being fenced");
        world.submit(Command::ClearHost(host)).expect("a known host");
    }
    let tenants: Vec<_> =
        world.cluster.tenants().filter_map(|(id, _)| world.cluster.window_owner(id)).collect();
    for owner in tenants {
        world.submit(Command::ChangeWindows { owner, windows: vec![] }).expect("a known tenant");
    }
    // A wall clock that stands a lot behind comes back, so that the run has an end.
    world.step_wall(3_000_000);
    for round in 0..60u16 {
        // A machine that has nowhere to go gets somewhere.
        for zone in 0..2 {
            let name = Name::new(&format!("spare{round}.{zone}")).expect("a good name");
            world
                .submit(Command::AdmitHost { name, zone: Some(Zone(zone)), capacity: Size::NONE })
                .expect("a new host");
        }
        world.complete_all();
        // Whoever has to say that a rollout may go on does.
        let rollouts: Vec<_> = world.cluster.rollouts().map(|(id, _)| id).collect();
        for rollout in rollouts {
            world.submit(Command::ResumeRollout(rollout)).expect("a known rollout");
        }
        world.advance(Duration::from_hours(24));
        let free = |(_, host): (HostId, &Host)| host.work.is_none() && host.rollout.is_none();
        let over = world.cluster.maintenances().next().is_none() && world.cluster.rollouts().next().is_none();
        if over && world.cluster.hosts().all(free) {
            return Ok(());
        }
    }
    let left =
        (world.cluster.maintenances().collect::<Vec<_>>(), world.cluster.rollouts().collect::<Vec<_>>());
    prop_assert!(false, "left over: {left:#?}");
    Ok(())
}

/// The notice of one maintenance after a command that ensures it, compared with the state before.
fn check_notice(
    world: &ObservedCluster,
    before: &Cluster,
    id: MaintenanceId,
    exposure: Exposure,
) -> Result<(), TestCaseError> {
    let (was, is) = (before.maintenance(id).expect("known"), world.cluster.maintenance(id).expect("known"));
    prop_assert_eq!(&was.plan.parts, &is.plan.parts);
    let minimum = is.plan.cause.minimum_notice().filter(|_| is.wait().is_some() && is.plan.is_announced());
    let Some(minimum) = minimum else {
        prop_assert_eq!(was, is);
        return Ok(());
    };
    let wall_left = is.plan.not_before.since(world.now.wall);
    let steady_left = is.plan.steady_due.since(world.now.steady);
    prop_assert!(is.plan.not_before >= was.plan.not_before && is.plan.steady_due >= was.plan.steady_due);
    let events = is.plan.parts.iter().filter_map(|part| part.announcement.as_ref());
    let events: Vec<_> = events.filter_map(|announced| Some(world.cluster.event(announced.id)?.1)).collect();
    match exposure {
        Exposure::Unread { margin } => {
            prop_assert!(wall_left >= minimum && steady_left >= minimum, "{wall_left:?} {steady_left:?}");
            prop_assert_eq!(is.plan.not_before.millis() % 1_000, 0);
            if was.plan.not_before != is.plan.not_before {
                prop_assert!(wall_left >= minimum + margin && steady_left >= wall_left);
            }
        }
        Exposure::PerhapsRead => {
            prop_assert_eq!(was.plan.not_before, is.plan.not_before, "a time that was read has moved");
            if events.iter().all(|event| event.is_unapproved()) && is.plan.steady_due != was.plan.steady_due {
                prop_assert_eq!(steady_left, minimum);
            }
            if events.iter().all(|event| event.is_approved()) {
                prop_assert_eq!(is.plan.steady_due, was.plan.steady_due, "an approved one waits");
            }
        }
    }
    for event in events {
        let Phase::Scheduled { not_before, .. } = event.phase else { panic!("it waits") };
        prop_assert_eq!(not_before, is.plan.not_before);
    }
    for part in &is.plan.parts {
        let incarnation = |cluster: &Cluster| cluster.tenant(part.tenant).map(|tenant| tenant.incarnation);
        prop_assert_eq!(incarnation(before), incarnation(&world.cluster));
    }
    Ok(())
}

proptest! {
    /// promise: T1
    #[test]
    fn no_choice_of_a_host_exceeds_its_capacity(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Capacity)?;
    }

    /// promise: N1
    #[test]
    fn no_event_starts_before_its_time_unless_its_tenant_approved(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::NeverEarly)?;
    }

    /// promise: N2
    #[test]
    fn every_event_starts_once_its_notice_is_over_and_ends(layout in layouts(), history in random_operations()) {
        let mut world = live(&layout, &history);
        let_everything_end(&mut world)?;
        kept(&world, Promise::NeverForgotten)?;
    }

    /// promise: N3
    #[test]
    fn no_announcement_gives_less_than_its_minimum_notice(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::FullNotice)?;
    }

    /// promise: N5
    #[test]
    fn incarnation_grows_exactly_when_a_vm_could_tell(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Incarnation)?;
    }

    /// promise: T3
    #[test]
    fn a_tenant_neither_sees_nor_approves_what_is_not_its_own(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Isolation)?;
    }

    /// promise: E3
    #[test]
    fn planned_work_is_in_one_update_domain_of_a_tenant_at_a_time(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::UpdateDomains)?;
    }

    /// promise: R1
    #[test]
    fn a_rollout_stays_within_its_budgets(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Budgets)?;
    }

    /// Windows of its own, and of its tenants.
    ///
    /// promise: R1
    #[test]
    fn a_rollout_announces_for_and_starts_in_its_windows_only(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Windows)?;
    }

    /// promise: R2
    #[test]
    fn a_rollout_that_is_held_announces_nothing(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Paused)?;
    }

    /// promise: R2
    #[test]
    fn a_rollout_waits_for_the_machines_of_its_last_group(layout in layouts(), history in random_operations()) {
        let mut world = live(&layout, &history);
        let_everything_end(&mut world)?;
        kept(&world, Promise::Returned)?;
        let observed = world.cluster.machines().any(|(id, _)| world.cluster.presences_of(id).next().is_some());
        prop_assert!(!observed, "a rollout that has ended observes a machine");
    }

    /// promise: R1
    #[test]
    fn a_rollout_works_on_each_of_its_hosts_once(layout in layouts(), history in random_operations()) {
        let mut world = live(&layout, &history);
        let_everything_end(&mut world)?;
        kept(&world, Promise::EachHostOnce)?;
    }

    /// promise: E1
    #[test]
    fn a_step_on_a_host_runs_while_its_machines_are_aside(layout in layouts(), history in random_operations()) {
        let mut world = live(&layout, &history);
        let_everything_end(&mut world)?;
        kept(&world, Promise::StepInside)?;
        kept(&world, Promise::ClosedHost)?;
    }

    /// promise: E4
    #[test]
    fn no_machine_of_a_failed_host_starts_elsewhere_before_the_host_is_fenced(
        layout in layouts(),
        history in random_operations(),
    ) {
        let mut world = live(&layout, &history);
        kept(&world, Promise::Fenced)?;
        let_everything_end(&mut world)?;
        kept(&world, Promise::Fenced)?;
    }

    /// promise: T5
    #[test]
    fn a_model_reaches_instances_batch_by_batch_and_forgets_nobody(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::Batches)?;
    }

    /// promise: E6
    #[test]
    fn forgetting_and_moving_order_nothing_and_announce_nothing(layout in layouts(), history in random_operations()) {
        let mut world = live(&layout, &history);
        let_everything_end(&mut world)?;
        kept(&world, Promise::Untouched)?;
    }

    /// promise: T3
    #[test]
    fn approving_twice_is_approving_once_and_a_request_counts_whole_or_not(
        layout in layouts(),
        history in random_operations(),
    ) {
        let mut world = live(&layout, &history);
        kept(&world, Promise::Approval)?;
        let unknown = EventId::parse("00000000-0000-4000-8000-000000000000").expect("a GUID");
        let tenants: Vec<_> = world.cluster.tenants().map(|(id, _)| id).collect();
        for tenant in tenants {
            let Some(seen) = world.cluster.tenant(tenant) else { continue };
            let mut events: Vec<_> = seen.events().iter().map(Event::id).collect();
            if events.is_empty() {
                continue;
            }
            let approve = |events: &[EventId]| Command::Approve { tenant, events: events.to_vec(), by: Approver::Owner };
            events.push(events[0]);
            world.submit(approve(&events)).expect("all its own");
            prop_assert_eq!(world.cluster.decide(world.now, &approve(&events)), Ok(vec![]));
            let approved = |world: &ObservedCluster| {
                let tenant = world.cluster.tenant(tenant);
                tenant.is_none_or(|tenant| !tenant.events().iter().any(Event::is_unapproved))
            };
            prop_assert!(approved(&world));
            events.push(unknown);
            prop_assert_eq!(world.cluster.decide(world.now, &approve(&events)), Err(Refusal::UnknownEvent));
        }
    }

    /// promise: N3
    #[test]
    fn an_announcement_that_is_readable_late_gets_its_whole_notice(
        layout in layouts(),
        history in random_operations(),
        delays in prop::collection::vec((0u64..2_000_000, exposures()), 1..5),
    ) {
        let mut world = live(&layout, &history);
        let maintenances: Vec<_> = world.cluster.maintenances().map(|known| known.plan.id).collect();
        for (millis, exposure) in delays {
            world.pass(Duration::from_millis(millis));
            let before = world.cluster.clone();
            world.submit(Command::EnsureNotice { maintenances: maintenances.clone(), exposure }).expect("never refused");
            for id in &maintenances {
                check_notice(&world, &before, *id, exposure)?;
            }
            prop_assert_eq!(&world.replayed(), &world.cluster);
            // At the same moment nothing is left to do.
            let again = Command::EnsureNotice { maintenances: maintenances.clone(), exposure };
            prop_assert_eq!(world.cluster.decide(world.now, &again), Ok(vec![]));
        }
        let_everything_end(&mut world)?;
        prop_assert!(world.observer.broken.is_empty(), "{:#?}", world.observer.broken);
    }

    /// promise: N5
    #[test]
    fn a_status_never_goes_back_and_an_id_is_never_used_again(layout in layouts(), history in random_operations()) {
        kept(&live(&layout, &history), Promise::OneWay)?;
    }

    /// promise: N4
    #[test]
    fn steps_of_the_wall_clock_make_an_event_late_and_never_early(
        layout in layouts(),
        history in random_operations(),
        steps in prop::collection::vec(-9_000_000i64..9_000_000, 70),
    ) {
        let mut world = build(&layout);
        for (random_operation, step) in history.iter().zip(steps) {
            world.step_wall(step);
            world.happen(random_operation);
            world.step_wall(-step);
        }
        kept(&world, Promise::NeverEarly)?;
        kept(&world, Promise::NeverForgotten)?;
        kept(&world, Promise::Windows)?;
    }
}

/// The histories above would prove nothing if hardly anything happened in them.
#[test]
fn random_histories_are_eventful() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..200 {
        let layout = layouts().new_tree(&mut runner).expect("a layout").current();
        let history = random_operations().new_tree(&mut runner).expect("a history").current();
        for (what, count) in live(&layout, &history).observer.seen {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    for what in ["appeared", "started", "gone", "approval", "planned start"] {
        assert!(seen.get(what).is_some_and(|count| *count >= 100), "{what}: {seen:?}");
    }
    for what in [
        "started in a window",
        "started at any time",
        "step on a host",
        "return after a step",
        "maintenance mode",
        "return after maintenance mode",
        "rollout paused",
        "machine awaited",
        "machine returned",
        "batch",
        "batch after a pause",
        "forgotten",
        "moved",
        "withdrawn by a forgotten or moved machine",
        "held for a fence",
        "fenced",
        "windows of a tenant changed",
        "started while a tenant has windows",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= 10), "{what}: {seen:?}");
    }
}
