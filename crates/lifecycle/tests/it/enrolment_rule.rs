//! The rule of enrolment: with the first request, or always.

#![allow(clippy::unwrap_used, reason = "test support")]

use std::time::Duration;

use crate::bare::{TestRules, approve_all, at};
use forewarn_lifecycle::*;

const DAY: Duration = Duration::from_hours(24);

fn settings(enrolment: EnrolmentRule) -> Command {
    Command::ChangeSettings(Settings { enrolment, ..Settings::default() })
}

fn enrolment(bare: &TestRules, tenant: u32) -> Enrolment {
    bare.cluster.tenant(TenantId(tenant)).unwrap().enrolment
}

/// Two hosts; `quiet` has sent no request, `loud` has.
fn two_tenants() -> TestRules {
    let mut bare = TestRules::with_hosts(2);
    bare.standalone("quiet", at(0, 0));
    bare.standalone("loud", at(1, 0));
    bare.submit(Command::Enrol(TenantId(1))).unwrap();
    bare
}

#[test]
fn every_tenant_is_enrolled_at_once_and_new_ones_from_the_beginning() {
    let mut bare = two_tenants();
    let changes = bare.ask(&settings(EnrolmentRule::Always)).unwrap();
    assert_eq!(changes.len(), 1, "one change, however many tenants there are");
    let effects = bare.apply(&changes[0]);
    assert_eq!(effects, [Effect::Publish(TenantId(0))], "only its document differs");
    let third = bare.standalone("third", at(0, 0));
    assert_eq!([0, 1, 2].map(|tenant| enrolment(&bare, tenant)), [Enrolment::BySetting; 3]);
    bare.submit(Command::Restart(third)).unwrap();
    assert_eq!(bare.events(TenantId(2)).len(), 1, "it is announced without a request");
    assert_eq!(bare.submit(settings(EnrolmentRule::Always)), Ok(vec![]));
}

#[test]
fn neither_requests_nor_silence_change_an_enrolment_by_setting() {
    let mut bare = two_tenants();
    bare.submit(settings(EnrolmentRule::Always)).unwrap();
    assert_eq!(bare.cluster.next_deadline(), None, "no silence is awaited");
    bare.now.steady = bare.now.steady.plus(DAY * 3);
    assert_eq!(bare.cluster.silences_due(bare.now).count(), 0);
    for tenant in [TenantId(0), TenantId(1)] {
        for command in
            [Command::Enrol(tenant), Command::Silent(tenant), Command::Heard { tenant, ago: Duration::ZERO }]
        {
            assert_eq!(bare.ask(&command), Ok(vec![]), "{command:?}");
        }
    }
}

#[test]
fn the_silence_of_a_tenant_begins_when_the_usual_rule_applies_again() {
    let mut bare = two_tenants();
    bare.submit(settings(EnrolmentRule::Always)).unwrap();
    bare.now.steady = bare.now.steady.plus(DAY * 3);
    let changes = bare.ask(&settings(EnrolmentRule::OnFirstPoll)).unwrap();
    assert_eq!(bare.apply(&changes[0]), [], "documents stay as they are");
    let until = Enrolment::Enabled { silent_at: bare.now.steady.plus(DAY) };
    assert_eq!([enrolment(&bare, 0), enrolment(&bare, 1)], [until; 2]);
    bare.standalone("third", at(0, 0));
    assert_eq!(enrolment(&bare, 2), Enrolment::Disabled);
    bare.now.steady = bare.now.steady.plus(DAY);
    assert_eq!(bare.cluster.silences_due(bare.now).count(), 2);
    assert_eq!(bare.ask(&Command::Silent(TenantId(0))), Ok(vec![Change::Disabled(TenantId(0))]));
}

/// A tenant with a visible event awaits no silence before the event has gone.
#[test]
fn a_visible_event_outlives_the_rule() {
    let mut bare = two_tenants();
    bare.submit(settings(EnrolmentRule::Always)).unwrap();
    bare.submit(Command::Restart(MachineId(0))).unwrap();
    bare.submit(settings(EnrolmentRule::OnFirstPoll)).unwrap();
    bare.now.steady = bare.now.steady.plus(DAY);
    assert_eq!(bare.cluster.silences_due(bare.now).collect::<Vec<_>>(), [TenantId(1)]);
    approve_all(&mut bare);
    let (maintenance, target, report) = (MaintenanceId(0), MachineId(0).into(), Report::Done);
    bare.submit(Command::Complete { maintenance, target, report }).unwrap();
    assert_eq!(bare.cluster.silences_due(bare.now).count(), 2);
}

#[test]
fn a_cluster_under_either_rule_is_restored_from_its_rows() {
    for rule in [EnrolmentRule::Always, EnrolmentRule::OnFirstPoll] {
        let mut bare = two_tenants();
        bare.submit(settings(EnrolmentRule::Always)).unwrap();
        bare.submit(settings(rule)).unwrap();
        let mut restoring = Restoring::new();
        bare.cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
        assert_eq!(restoring.finish().unwrap(), bare.cluster);
    }
}
