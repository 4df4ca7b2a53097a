//! Work that waits for a host: which changes of hosts have it checked again, and how often.

use forewarn_lifecycle::limits::MACHINES_PER_HOST_MAX;
use forewarn_lifecycle::*;

use crate::bare::{TestRules, at, name};

fn host(bare: &mut TestRules, text: &str, zone: u16) -> HostId {
    bare.submit(Command::AdmitHost { name: name(text), zone: Some(Zone(zone)), capacity: Size::NONE })
        .unwrap();
    bare.cluster.host_named(text).unwrap()
}

/// Has the machines of a host leave it; nobody is enrolled, so they leave at once or are held.
fn degrade(bare: &mut TestRules, host: HostId) {
    bare.submit(Command::DegradeHost { host, fails_in: None }).unwrap();
    bare.settle();
}

fn held_for_host(bare: &TestRules) -> usize {
    bare.cluster.held().filter(|(_, hold)| *hold == Hold::NoHost).count()
}

/// Decides everything that is due. Returns the number of times that work was held again.
fn settle_counting_holds(bare: &mut TestRules) -> usize {
    let mut holds = 0;
    while bare.cluster.next_deadline().is_some_and(|deadline| deadline.is_due(bare.now)) {
        let changes = bare.submit(Command::Tick).unwrap();
        let held = |change: &&Change| matches!(change, Change::Waits { wait: Wait::Held(Hold::NoHost), .. });
        holds += changes.iter().filter(held).count();
    }
    holds
}

fn restored(cluster: &Cluster) -> Cluster {
    let mut restoring = Restoring::new();
    cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

#[test]
fn only_a_host_that_can_help_has_waiting_work_checked() {
    let mut bare = TestRules::new();
    let [ill, full_of_others, elsewhere] =
        [("ill", 1), ("other", 1), ("elsewhere", 2)].map(|(text, zone)| host(&mut bare, text, zone));
    let tenant = bare.set("web", SetShape::AvailabilitySet);
    bare.member(tenant, "web-0", at(ill.0, 0)).unwrap();
    bare.member(tenant, "web-1", at(full_of_others.0, 1)).unwrap();
    let unrelated = bare.standalone("unrelated", at(full_of_others.0, 0));
    let foreign = bare.standalone("foreign", at(elsewhere.0, 0));
    degrade(&mut bare, ill);
    assert_eq!(held_for_host(&bare), 1, "the other host of the zone has another update domain of the tenant");
    assert_eq!(restored(&bare.cluster), bare.cluster);
    for machine in [unrelated, foreign] {
        bare.submit(Command::Forget(machine)).unwrap();
        assert_eq!(bare.cluster.next_deadline(), None, "nothing has changed for the machine that waits");
    }
    host(&mut bare, "new", 2);
    assert_eq!(bare.cluster.next_deadline(), None, "a host of another zone cannot help");
    bare.submit(Command::Forget(MachineId(1))).unwrap();
    assert_eq!(settle_counting_holds(&mut bare), 0);
    assert_eq!((held_for_host(&bare), bare.cluster.unfinished().count()), (0, 1));
}

#[test]
fn a_free_place_is_offered_to_one_after_the_other_until_it_is_taken() {
    let mut bare = TestRules::new();
    let (ill, full) = (host(&mut bare, "ill", 1), host(&mut bare, "full", 1));
    let tenant = bare.set("web", SetShape::AvailabilitySet);
    // The first machine that waits cannot use the place: the full host has another update domain of its tenant.
    bare.member(tenant, "web-0", at(ill.0, 0)).unwrap();
    for number in 0..50 {
        bare.standalone(&format!("waits-{number}"), at(ill.0, 0));
    }
    bare.member(tenant, "web-1", at(full.0, 1)).unwrap();
    let fillers: Vec<_> = (1..MACHINES_PER_HOST_MAX)
        .map(|number| bare.standalone(&format!("fills-{number}"), at(full.0, 0)))
        .collect();
    degrade(&mut bare, ill);
    assert_eq!(held_for_host(&bare), 51);
    for (taken, filler) in fillers.into_iter().take(3).enumerate() {
        bare.submit(Command::Forget(filler)).unwrap();
        let offered =
            bare.cluster.maintenances().filter(|work| matches!(work.wait(), Some(Wait::Offered { .. })));
        assert_eq!(offered.count(), 1);
        assert_eq!(restored(&bare.cluster), bare.cluster);
        let holds = settle_counting_holds(&mut bare);
        assert!(holds <= 2, "{holds} checks in vain");
        assert_eq!((held_for_host(&bare), bare.cluster.unfinished().count()), (50 - taken, taken + 1));
    }
    // A host with room for all takes all but the first, and then that one.
    host(&mut bare, "new", 1);
    let holds = settle_counting_holds(&mut bare);
    assert_eq!((held_for_host(&bare), holds), (0, 0));
}

/// promise: N2
#[test]
fn a_group_that_needs_several_places_is_checked_when_one_more_is_free() {
    let mut bare = TestRules::new();
    let (from, to) = (host(&mut bare, "from", 1), host(&mut bare, "to", 1));
    bare.standalone("vm-1", at(from.0, 0));
    bare.standalone("vm-2", at(from.0, 0));
    let fillers: Vec<_> = (1..MACHINES_PER_HOST_MAX)
        .map(|number| bare.standalone(&format!("fills-{number}"), at(to.0, 0)))
        .collect();
    let hosts = [from].into_iter().collect();
    bare.submit(Command::Rollout { work: HostWork::Migration.into(), hosts, terms: RolloutTerms::default() })
        .unwrap();
    bare.settle();
    assert_eq!(
        (held_for_host(&bare), bare.cluster.unfinished().count()),
        (1, 0),
        "one place for two machines"
    );
    bare.submit(Command::Forget(fillers[0])).unwrap();
    bare.settle();
    assert_eq!((held_for_host(&bare), bare.cluster.unfinished().count()), (0, 2));
}

/// Rows read when a machine leaves an open host while that many others wait for a host.
fn cost_of_leaving(waiting: u32) -> u64 {
    let mut bare = TestRules::new();
    let (ill, other) = (host(&mut bare, "ill", 1), host(&mut bare, "other", 1));
    for number in 0..waiting {
        let tenant = bare.set(&format!("web-{number}"), SetShape::AvailabilitySet);
        bare.member(tenant, &format!("waits-{number}"), at(ill.0, 0)).unwrap();
        bare.member(tenant, &format!("bars-{number}"), at(other.0, 1)).unwrap();
    }
    let unrelated = bare.standalone("unrelated", at(other.0, 0));
    degrade(&mut bare, ill);
    assert_eq!(held_for_host(&bare), waiting as usize);
    let before = reads();
    bare.submit(Command::Forget(unrelated)).unwrap();
    bare.settle();
    reads() - before
}

#[test]
fn a_machine_that_leaves_costs_the_same_however_many_wait_for_a_host() {
    let (few, many) = (cost_of_leaving(4), cost_of_leaving(400));
    assert!(many <= few + few / 5, "{few} and {many} reads");
}
