//! Every limit, at its last permitted value and one beyond.

#![allow(clippy::wildcard_enum_match_arm, reason = "one refusal is looked for")]

use std::time::Duration;

use crate::bare::{TestRules, at, name};
use forewarn_lifecycle::limits::*;
use forewarn_lifecycle::*;

fn too_many(answer: &Result<Vec<Change>, Refusal>) -> Option<(&str, usize)> {
    match answer {
        Err(Refusal::TooMany { what, max }) => Some((what.as_ref(), *max)),
        _ => None,
    }
}

#[test]
fn limits_fit_together() {
    assert_eq!((EVENTS_PER_TENANT_MAX, IDS_PER_APPROVAL_MAX, ENDED_KEPT_MAX), (1_000, 2_000, 4_000));
    assert_eq!(RESOURCES_PER_EVENT_MAX, MACHINES_PER_HOST_MAX);
    assert_eq!(FAILURE_EXPECTED_IN_MAX, Duration::from_secs(604_800));
}

/// promise: C3
#[test]
fn a_cluster_has_a_limited_number_of_hosts() {
    let mut bare = TestRules::new();
    for number in 0..HOSTS_MAX {
        bare.apply(&Change::HostAdmitted {
            host: HostId(u32::try_from(number).unwrap()),
            name: name(&format!("h{number}")),
            zone: None,
        });
        if number + 2 == HOSTS_MAX {
            assert!(
                bare.ask(&Command::AdmitHost { name: name("last"), zone: None, capacity: Size::NONE })
                    .is_ok()
            );
        }
    }
    let refused = bare.ask(&Command::AdmitHost { name: name("more"), zone: None, capacity: Size::NONE });
    assert_eq!(too_many(&refused), Some(("hosts", HOSTS_MAX)));
}

/// promise: C3
#[test]
fn a_host_takes_a_limited_number_of_machines() {
    let mut bare = TestRules::with_hosts(2);
    for number in 0..MACHINES_PER_HOST_MAX {
        bare.standalone(&format!("vm{number}"), at(1, 0));
    }
    let refused = bare.submit(crate::bare::admission("more", at(1, 0)));
    assert_eq!(too_many(&refused), Some(("machines on the host", MACHINES_PER_HOST_MAX)));
    // Nor does a machine move there, until one has left.
    let mover = bare.standalone("mover", at(0, 0));
    assert_eq!(bare.submit(Command::Redeploy(mover)), Err(Refusal::NoHost(name("mover"))));
    bare.submit(Command::Delete(MachineId(0))).unwrap();
    bare.complete_all();
    bare.submit(Command::Redeploy(mover)).unwrap();
    // Its place is kept while it is on its way.
    let refused = bare.submit(crate::bare::admission("more", at(1, 0)));
    assert_eq!(too_many(&refused), Some(("machines on the host", MACHINES_PER_HOST_MAX)));
}

#[test]
fn machines_that_move_together_do_not_overfill_a_host() {
    let mut bare = TestRules::with_hosts(3);
    for number in 0..MACHINES_PER_HOST_MAX - 2 {
        bare.standalone(&format!("vm{number}"), at(1, 0));
    }
    for number in 0..4 {
        bare.standalone(&format!("mover{number}"), at(0, 0));
    }
    bare.submit(Command::FailHost(HostId(0))).unwrap();
    bare.complete_all();
    assert_eq!(bare.cluster.host(HostId(1)).unwrap().machines().len(), MACHINES_PER_HOST_MAX);
    assert_eq!(bare.cluster.host(HostId(2)).unwrap().machines().len(), 2);
}

/// promise: C3
#[test]
fn a_tenant_has_a_limited_number_of_machines() {
    let mut bare = TestRules::with_hosts(3);
    let db = bare.set("db", SetShape::AvailabilitySet);
    for number in 0..MACHINES_PER_TENANT_MAX {
        bare.member(db, &format!("vm{number}"), at(u32::try_from(number % 3).unwrap(), 0)).unwrap();
    }
    let refused = bare.member(db, "more", at(0, 0));
    assert_eq!(too_many(&refused), Some(("machines of the tenant", MACHINES_PER_TENANT_MAX)));
}

/// promise: C3
#[test]
fn a_scale_set_has_a_limited_number_of_placement_groups() {
    let mut bare = TestRules::with_hosts(6);
    for (set, orchestration, groups) in [(0, Orchestration::Uniform, 10), (1, Orchestration::Flexible, 1)] {
        let scale_set = bare.scale_set(&format!("set{set}"), orchestration, Profile::default());
        for number in 0..1_000 {
            bare.submit(Command::AdmitInstance {
                scale_set,
                placement: at(number % 3 + 3 * set, 0),
                number: None,
            })
            .unwrap();
        }
        assert_eq!(bare.cluster.scale_set(scale_set).unwrap().groups.len(), groups);
        let refused =
            bare.submit(Command::AdmitInstance { scale_set, placement: at(3 * set, 0), number: None });
        assert_eq!(too_many(&refused), Some(("placement groups of the scale set", groups)));
    }
}

/// promise: C3
#[test]
fn a_tenant_sees_a_limited_number_of_events_but_a_failure_is_never_refused() {
    let mut bare = TestRules::with_hosts(3);
    let scale_set = bare.scale_set("web", Orchestration::Flexible, Profile::default());
    for number in 0..MACHINES_PER_TENANT_MAX {
        let placement = at(u32::try_from(number % 2).unwrap(), 0);
        bare.submit(Command::AdmitInstance { scale_set, placement, number: None }).unwrap();
    }
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    for number in 0..EVENTS_PER_TENANT_MAX - 1 {
        bare.submit(Command::Restart(MachineId(u32::try_from(number).unwrap()))).unwrap();
    }
    let update = Command::Rollout {
        work: HostWork::Update.into(),
        hosts: vec![HostId(0)],
        terms: RolloutTerms::default(),
    };
    assert!(bare.ask(&update).is_ok());
    // One event for each machine of a host would be too many, though the first is not.
    let refused = bare.ask(&Command::DegradeHost { host: HostId(0), fails_in: None });
    assert_eq!(too_many(&refused), Some(("events for the tenant", EVENTS_PER_TENANT_MAX)));
    bare.submit(Command::Restart(MachineId(999))).unwrap();
    // Planned work waits until the tenant can get an event, and delays no other tenant.
    bare.submit(update).unwrap();
    let rollout = bare.cluster.rollout(RolloutId(0)).unwrap();
    assert_eq!((rollout.current(), rollout.waiting.iter().collect()), (None, vec![HostId(0)]));
    bare.submit(Command::Cancel(MaintenanceId(0))).unwrap();
    bare.settle();
    assert!(bare.cluster.rollout(RolloutId(0)).unwrap().current().is_some());
    // A delete that takes the place of a restart needs no room.
    let terminate = Profile { terminate: Some(TerminateNotice::MIN), ..Profile::default() };
    bare.submit(Command::ChangeModel { scale_set, model: terminate }).unwrap();
    bare.submit(Command::UpgradeInstance(MachineId(7))).unwrap();
    bare.submit(Command::Delete(MachineId(7))).unwrap();
    bare.submit(Command::FailHost(HostId(1))).unwrap();
    assert_eq!(bare.cluster.tenant(TenantId(0)).unwrap().events().len(), EVENTS_PER_TENANT_MAX + 1);
}

/// promise: C3
#[test]
fn a_group_touches_a_limited_number_of_machines() {
    for (machines, first, second) in [(MACHINES_PER_GROUP_MAX, MACHINES_PER_GROUP_MAX, 0), (1_001, 668, 333)]
    {
        let mut bare = TestRules::with_hosts(4);
        for number in 0..machines {
            bare.standalone(&format!("vm{number}"), at(u32::try_from(number / 334).unwrap(), 0));
        }
        let hosts = (0..4).map(HostId).collect();
        bare.submit(Command::Rollout {
            work: HostWork::Update.into(),
            hosts,
            terms: RolloutTerms::default(),
        })
        .unwrap();
        // 334, 334 and 333 machines are one too many for one group, so the last host is in the next.
        assert_eq!(bare.cluster.unfinished().count(), first);
        bare.complete_all();
        assert_eq!(bare.cluster.unfinished().count(), second);
    }
}

/// promise: C3
#[test]
fn an_approval_has_a_limited_number_of_ids() {
    let (mut bare, solo) = TestRules::solo();
    bare.submit(Command::Restart(solo)).unwrap();
    let id = bare.cluster.tenant(TenantId(0)).unwrap().events()[0].id();
    let approve =
        |count| Command::Approve { tenant: TenantId(0), events: vec![id; count], by: Approver::Owner };
    assert!(bare.ask(&approve(IDS_PER_APPROVAL_MAX)).is_ok());
    assert_eq!(
        too_many(&bare.ask(&approve(IDS_PER_APPROVAL_MAX + 1))),
        Some(("event ids", IDS_PER_APPROVAL_MAX))
    );
    assert_eq!(bare.ask(&approve(0)), Err(Refusal::NoEvents));
}

/// promise: C3
#[test]
fn a_rollout_has_a_limited_number_of_hosts_and_there_are_not_many_rollouts() {
    let mut bare = TestRules::with_hosts(70);
    let rollout =
        |hosts| Command::Rollout { work: HostWork::Update.into(), hosts, terms: RolloutTerms::default() };
    assert!(bare.ask(&rollout(vec![HostId(0); HOSTS_PER_ROLLOUT_MAX])).is_ok());
    let refused = bare.ask(&rollout(vec![HostId(0); HOSTS_PER_ROLLOUT_MAX + 1]));
    assert_eq!(too_many(&refused), Some(("hosts in a rollout", HOSTS_PER_ROLLOUT_MAX)));
    assert_eq!(bare.ask(&rollout(vec![])), Err(Refusal::NoHosts));
    bare.submit(Command::Brake(Brake::On)).unwrap();
    for host in 0..ROLLOUTS_MAX {
        bare.submit(rollout(vec![HostId(u32::try_from(host).unwrap())])).unwrap();
    }
    let refused = bare.ask(&rollout(vec![HostId(69)]));
    assert_eq!(too_many(&refused), Some(("rollouts at once", ROLLOUTS_MAX)));
    // Rollouts that are over make room.
    bare.submit(Command::Brake(Brake::Off)).unwrap();
    bare.settle();
    assert_eq!(bare.cluster.rollouts().count(), 0);
}

/// promise: C3
#[test]
fn an_event_names_a_limited_number_of_machines() {
    let mut bare = TestRules::with_hosts(3);
    let scale_set = bare.scale_set("web", Orchestration::Flexible, Profile::default());
    for number in 0..RESOURCES_PER_EVENT_MAX + 1 {
        let host = u32::from(number >= 250);
        bare.submit(Command::AdmitInstance { scale_set, placement: at(host, 0), number: None }).unwrap();
    }
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    let hosts = vec![HostId(0), HostId(1)];
    // 250 and 251: one more than fits, so the second host has to wait.
    bare.submit(Command::Rollout {
        work: HostWork::Update.into(),
        hosts: hosts.clone(),
        terms: RolloutTerms::default(),
    })
    .unwrap();
    let named =
        |bare: &TestRules| bare.cluster.tenant(TenantId(0)).unwrap().events()[0].announcement.resources.len();
    assert_eq!(named(&bare), 250);
    bare.submit(Command::CancelRollout(RolloutId(0))).unwrap();
    bare.submit(Command::Delete(MachineId(500))).unwrap();
    bare.complete_all();
    bare.submit(Command::Rollout { work: HostWork::Update.into(), hosts, terms: RolloutTerms::default() })
        .unwrap();
    assert_eq!(named(&bare), RESOURCES_PER_EVENT_MAX);
}

#[test]
fn the_only_host_that_can_take_a_machine_is_found_behind_any_number_of_others() {
    let mut bare = TestRules::with_hosts(902);
    let solo = bare.standalone("solo", at(0, 0));
    let hosts: Vec<_> = (1..=900).map(HostId).collect();
    for host in &hosts {
        bare.standalone(&format!("vm{host}"), at(host.0, 0));
    }
    // Nobody is enrolled: all of it is under way at once, and nothing is over.
    bare.submit(Command::Rollout { work: HostWork::Restart.into(), hosts, terms: RolloutTerms::default() })
        .unwrap();
    let before = reads();
    bare.submit(Command::Redeploy(solo)).unwrap();
    assert!(bare.cluster.host(HostId(901)).unwrap().machines().contains(&solo));
    let cost = reads() - before;
    assert!(cost < 100, "{cost} reads");
}

/// promise: C3
#[test]
fn domains_are_numbered_up_to_a_limit() {
    let bare = TestRules::with_hosts(1);
    let domains = |update, fault| Placement {
        host: HostId(0),
        update_domain: UpdateDomain(update),
        fault_domain: FaultDomain(fault),
        size: Size::NONE,
    };
    let last = (UPDATE_DOMAINS_MAX - 1, FAULT_DOMAINS_MAX - 1);
    assert!(bare.ask(&crate::bare::admission("vm", domains(last.0, last.1))).is_ok());
    for (update, fault) in [(last.0 + 1, 0), (0, last.1 + 1)] {
        assert_eq!(
            bare.ask(&crate::bare::admission("vm", domains(update, fault))),
            Err(Refusal::DomainOutOfRange)
        );
    }
}

#[test]
fn a_failure_is_expected_within_seven_days() {
    let bare = TestRules::with_hosts(1);
    let degrade = |fails_in| bare.ask(&Command::DegradeHost { host: HostId(0), fails_in: Some(fails_in) });
    assert!(degrade(FAILURE_EXPECTED_IN_MAX).is_ok());
    assert_eq!(degrade(FAILURE_EXPECTED_IN_MAX + Duration::from_millis(1)), Err(Refusal::FailureTooFar));
}

/// promise: T3
#[test]
fn ids_of_ended_events_are_forgotten_after_an_hour_or_when_there_are_too_many() {
    let (mut bare, solo) = TestRules::solo();
    let mut ids = Vec::new();
    let good = |bare: &TestRules, id| {
        let approve = Command::Approve { tenant: TenantId(0), events: vec![id], by: Approver::Machine(solo) };
        bare.ask(&approve) == Ok(vec![])
    };
    for _ in 0..=ENDED_KEPT_MAX {
        bare.submit(Command::Restart(solo)).unwrap();
        let id = bare.cluster.tenant(TenantId(0)).unwrap().events()[0].id();
        bare.submit(Command::Approve { tenant: TenantId(0), events: vec![id], by: Approver::Owner }).unwrap();
        bare.complete_all();
        ids.push(id);
    }
    assert!(!good(&bare, ids[0]) && good(&bare, ids[1]) && good(&bare, ids[ENDED_KEPT_MAX]));
    bare.advance(ENDED_KEPT_FOR);
    assert!(good(&bare, ids[1]));
    bare.advance(Duration::from_millis(1));
    assert!(!good(&bare, ids[1]));
}
