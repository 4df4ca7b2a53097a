//! The machines that a rollout with the gate `machines` awaits, case by case.

use std::time::Duration;

use forewarn_lifecycle::*;

use crate::bare::{TestRules, at};

/// The machine on the first host; the rollout reaches the second host after it.
const FIRST: MachineId = MachineId(0);
const ROLLOUT: RolloutId = RolloutId(0);

fn terms(health: HealthGate) -> RolloutTerms {
    let one = std::num::NonZeroU16::MIN;
    RolloutTerms { health, hosts_at_once: Some(one), stop_after: None, ..RolloutTerms::default() }
}

/// Two hosts with a machine each, and a third host; a rollout whose first group is announced.
fn announced(work: HostTask, priority: Priority) -> TestRules {
    let mut bare = TestRules::with_hosts(3);
    for host in 0..2 {
        let (name, placement) = (crate::bare::name(&format!("vm{host}")), at(host, 0));
        let (profile, policy) = (Profile::default(), Policy::default());
        bare.submit(Command::AdmitStandalone { name, placement, priority, profile, policy }).unwrap();
        bare.submit(Command::Enrol(TenantId(host))).unwrap();
    }
    let hosts = vec![HostId(0), HostId(1)];
    bare.submit(Command::Rollout { work, hosts, terms: terms(HealthGate::Machines) }).unwrap();
    bare
}

/// The same after the end of the first group. The machine has polled before, and not since.
fn away(work: HostTask, priority: Priority) -> TestRules {
    let mut bare = announced(work, priority);
    bare.submit(Command::Polled(FIRST)).unwrap();
    bare.advance(Duration::from_mins(16));
    bare.complete_all();
    bare
}

fn restarted() -> TestRules {
    away(HostWork::Restart.into(), Priority::Regular)
}

fn standing(bare: &TestRules) -> Standing {
    bare.cluster.rollout(ROLLOUT).unwrap().standing
}

fn goes_on(bare: &TestRules) -> bool {
    matches!(standing(bare), Standing::Works(_)) && bare.cluster.machines_away(ROLLOUT).next().is_none()
}

/// promise: R2
#[test]
fn a_machine_is_awaited_from_the_end_of_its_impact_until_it_polls() {
    for work in [HostWork::Update, HostWork::NetworkUpdate, HostWork::Migration, HostWork::Restart] {
        for task in [HostTask::from(work), HostTask::from(work).with_step(None)] {
            let mut bare = away(task.clone(), Priority::Regular);
            assert_eq!(standing(&bare), Standing::Unwell, "{task:?}");
            assert_eq!(bare.cluster.machines_away(ROLLOUT).collect::<Vec<_>>(), [(FIRST, bare.now.wall)]);
            assert_eq!(bare.cluster.polls_awaited_of(TenantId(0)), [FIRST]);
            bare.submit(Command::Polled(MachineId(1))).unwrap();
            bare.advance(Duration::from_hours(12));
            assert_eq!(standing(&bare), Standing::Unwell, "another machine, and time, change nothing");
            let polled = bare.submit(Command::Polled(FIRST)).unwrap();
            assert_eq!(polled, [Change::Polled(FIRST)]);
            assert_eq!(bare.ask(&Command::Polled(FIRST)), Ok(vec![]), "no rollout waits for it any more");
            bare.settle();
            assert!(goes_on(&bare), "{task:?}");
        }
    }
}

/// promise: R2
#[test]
fn a_machine_that_has_not_polled_since_the_announcement_is_not_awaited() {
    let mut bare = announced(HostWork::Restart.into(), Priority::Regular);
    assert_eq!(bare.cluster.polls_awaited_of(TenantId(0)), [FIRST], "its first poll is to be reported");
    bare.advance(Duration::from_mins(16));
    bare.complete_all();
    assert!(goes_on(&bare));
    assert_eq!(bare.cluster.polls_awaited_of(TenantId(0)), []);
}

/// promise: R2
#[test]
fn a_machine_that_is_off_or_gone_is_not_awaited() {
    let machine = FIRST;
    for end in [
        Command::ChangePower { machine, change: PowerChange::Stop },
        Command::ChangePower { machine, change: PowerChange::Deallocate },
        Command::Delete(machine),
        Command::Evict(machine),
        Command::Forget(machine),
    ] {
        let spot = Priority::Spot(EvictionPolicy::Delete);
        let mut bare = away(HostWork::Restart.into(), spot);
        assert_eq!(standing(&bare), Standing::Unwell);
        bare.submit(end.clone()).unwrap();
        bare.advance(Duration::from_mins(1));
        bare.complete_all();
        assert!(goes_on(&bare), "{end:?}: {:?}", standing(&bare));
    }
}

#[test]
fn a_machine_that_moves_by_other_means_is_still_awaited() {
    let mut bare = restarted();
    bare.submit(Command::Move { machine: FIRST, to: HostId(2), planned: PlannedWork::GivesWay }).unwrap();
    bare.settle();
    assert_eq!(standing(&bare), Standing::Unwell);
    bare.submit(Command::Polled(FIRST)).unwrap();
    bare.settle();
    assert!(goes_on(&bare));
}

#[test]
fn a_machine_whose_impact_failed_is_a_failure_and_not_awaited() {
    let mut bare = announced(HostWork::Restart.into(), Priority::Regular);
    bare.submit(Command::Polled(FIRST)).unwrap();
    bare.advance(Duration::from_mins(16));
    let Action { maintenance, target, .. } = bare.cluster.unfinished().next().unwrap();
    bare.submit(Command::Complete { maintenance, target, report: Report::Failed }).unwrap();
    bare.settle();
    assert!(goes_on(&bare));
    assert_eq!(bare.cluster.rollout(ROLLOUT).unwrap().failures, 1);
}

/// promise: R2
#[test]
fn a_resume_another_gate_and_a_cancellation_end_the_wait() {
    let change = |health| Command::ChangeRollout {
        rollout: ROLLOUT,
        terms: terms(health),
        add: Vec::new(),
        remove: Vec::new(),
    };
    for command in [Command::ResumeRollout(ROLLOUT), change(HealthGate::Awaited), change(HealthGate::Ignored)]
    {
        let mut bare = restarted();
        bare.submit(command.clone()).unwrap();
        bare.settle();
        assert!(goes_on(&bare), "{command:?}");
    }
    let mut bare = restarted();
    bare.submit(Command::CancelRollout(ROLLOUT)).unwrap();
    bare.settle();
    assert_eq!(bare.cluster.presences_of(FIRST).count(), 0);
}

#[test]
fn a_resume_of_a_paused_rollout_does_not_excuse_machines() {
    let mut bare = restarted();
    bare.submit(Command::PauseRollout { rollout: ROLLOUT, announced: Announced::Stays }).unwrap();
    bare.submit(Command::ResumeRollout(ROLLOUT)).unwrap();
    bare.settle();
    assert_eq!(standing(&bare), Standing::Unwell);
}

#[test]
fn polls_to_report_are_published_and_other_gates_publish_none() {
    let mut bare = announced(HostWork::Restart.into(), Priority::Regular);
    let change = bare.ask(&Command::Polled(FIRST)).unwrap().remove(0);
    assert_eq!(bare.apply(&change), [Effect::Publish(TenantId(0))]);
    assert_eq!(bare.cluster.polls_awaited_of(TenantId(0)), []);
    let other = Command::ChangeRollout {
        rollout: ROLLOUT,
        terms: terms(HealthGate::Awaited),
        add: Vec::new(),
        remove: Vec::new(),
    };
    bare.submit(other).unwrap();
    assert_eq!(bare.cluster.presences_of(FIRST).count(), 0);
}

#[test]
fn observed_machines_survive_as_rows() {
    for bare in [announced(HostWork::Update.into(), Priority::Regular), restarted()] {
        let mut restoring = Restoring::new();
        bare.cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
        let restored = restoring.finish().unwrap();
        assert_eq!(restored, bare.cluster);
        assert_eq!(restored.polls_awaited_of(TenantId(0)), [FIRST]);
    }
}
