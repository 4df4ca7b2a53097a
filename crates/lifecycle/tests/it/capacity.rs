//! Sizes of machines and capacities of hosts: the choice of a host respects them, recorded facts do not.

use forewarn_lifecycle::*;

use crate::bare::{TestRules, at, name};

const fn cpus(cpus: u16) -> Size {
    Size { cpus, memory_mib: 0 }
}

const fn size(cpus: u16, gib: u32) -> Size {
    Size { cpus, memory_mib: 1024 * gib }
}

fn host(bare: &mut TestRules, text: &str, capacity: Size) -> HostId {
    bare.submit(Command::AdmitHost { name: name(text), zone: None, capacity }).unwrap();
    bare.cluster.host_named(text).unwrap()
}

fn vm(bare: &mut TestRules, text: &str, host: HostId, size: Size) -> MachineId {
    bare.standalone(text, Placement { size, ..at(host.0, 0) })
}

fn used(bare: &TestRules, host: HostId) -> (u32, u64) {
    let used = bare.cluster.room_of(host).used;
    (used.cpus, used.memory_mib / 1024)
}

fn power(bare: &mut TestRules, machine: MachineId, change: PowerChange) -> Result<Vec<Change>, Refusal> {
    bare.submit(Command::ChangePower { machine, change })
}

fn host_of(bare: &TestRules, machine: MachineId) -> HostId {
    bare.cluster.machine(machine).unwrap().host
}

fn migrate(hosts: &[HostId]) -> Command {
    let terms = RolloutTerms::default();
    Command::Rollout { work: HostWork::Migration.into(), hosts: hosts.to_vec(), terms }
}

fn restored(cluster: &Cluster) -> Cluster {
    let mut restoring = Restoring::new();
    cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

/// promise: T1
#[test]
fn a_new_machine_needs_room_on_its_host() {
    let mut bare = TestRules::new();
    let small = host(&mut bare, "small", size(4, 8));
    vm(&mut bare, "a", small, size(2, 6));
    let refused = bare.submit(crate::bare::admission("b", Placement { size: size(2, 4), ..at(0, 0) }));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("needs 2 CPUs and 4 GiB; small has 2 GiB of 8 GiB free\n"), "{text}");
    vm(&mut bare, "fits", small, size(2, 2));
    vm(&mut bare, "without", small, Size::NONE);
    assert_eq!(used(&bare, small), (4, 8));
    assert_eq!(restored(&bare.cluster), bare.cluster);
}

/// promise: T1
#[test]
fn a_deallocated_machine_takes_no_room_and_a_stopped_one_does() {
    let mut bare = TestRules::new();
    let only = host(&mut bare, "only", cpus(4));
    let first = vm(&mut bare, "first", only, cpus(4));
    power(&mut bare, first, PowerChange::Stop).unwrap();
    bare.complete_all();
    assert_eq!(used(&bare, only), (4, 0));
    power(&mut bare, first, PowerChange::Deallocate).unwrap();
    bare.complete_all();
    assert_eq!(used(&bare, only), (0, 0));
    let second = vm(&mut bare, "second", only, cpus(3));
    let refused = power(&mut bare, first, PowerChange::Start).unwrap_err().to_string();
    let why = "no other host can take first: it needs 4 CPUs; only has 1 of 4 CPUs free\n";
    assert!(refused.starts_with(why), "{refused}");
    bare.submit(Command::Delete(second)).unwrap();
    bare.complete_all();
    power(&mut bare, first, PowerChange::Start).unwrap();
    assert_eq!(used(&bare, only), (4, 0), "room is taken as soon as the start is decided");
    assert_eq!(restored(&bare.cluster), bare.cluster);
    bare.complete_all();
    assert_eq!(used(&bare, only), (4, 0));
}

/// promise: T1
#[test]
fn a_machine_goes_where_it_fits_and_takes_room_on_both_hosts_meanwhile() {
    let mut bare = TestRules::new();
    let [from, tight, wide] =
        [("from", 8), ("tight", 4), ("wide", 16)].map(|(text, count)| host(&mut bare, text, cpus(count)));
    let mover = vm(&mut bare, "mover", from, cpus(6));
    bare.submit(Command::Redeploy(mover)).unwrap();
    assert_eq!([from, tight, wide].map(|host| used(&bare, host).0), [6, 0, 6]);
    assert_eq!(restored(&bare.cluster), bare.cluster);
    bare.complete_all();
    assert_eq!((host_of(&bare, mover), used(&bare, from)), (wide, (0, 0)));
    vm(&mut bare, "other", from, cpus(3));
    let refused = bare.submit(Command::Redeploy(mover)).unwrap_err().to_string();
    let hosts = "it needs 6 CPUs; from has 5 of 8 CPUs free, tight has 4 of 4 CPUs free\n";
    assert!(refused.contains(hosts), "{refused}");
}

/// promise: T1
#[test]
fn a_refusal_names_a_few_hosts_and_counts_the_others() {
    let mut bare = TestRules::new();
    let from = host(&mut bare, "from", Size::NONE);
    for number in 0..7 {
        host(&mut bare, &format!("h{number}"), cpus(2));
    }
    bare.submit(Command::FailHost(HostId(1))).unwrap();
    let mover = vm(&mut bare, "mover", from, cpus(4));
    let refused = bare.submit(Command::Redeploy(mover)).unwrap_err().to_string();
    assert!(refused.contains("h0 has failed, h1 has 2 of 2 CPUs free, h2"), "{refused}");
    assert!(refused.contains(", and 4 more cannot take it either\n"), "{refused}");
}

/// promise: T1
#[test]
fn a_refusal_says_what_else_is_against_a_host_with_room() {
    let mut bare = TestRules::with_hosts(2);
    let scale_set = bare.scale_set("web", Orchestration::Uniform, Profile::default());
    bare.submit(Command::ResizeInstances { scale_set, size: cpus(2) }).unwrap();
    host(&mut bare, "small", cpus(1));
    for placement in [at(0, 0), at(1, 1)] {
        bare.submit(Command::AdmitInstance { scale_set, placement, number: None }).unwrap();
    }
    let refused = bare.submit(Command::Redeploy(MachineId(0))).unwrap_err().to_string();
    assert!(refused.contains(" has another update domain of the tenant"), "{refused}");
}

/// promise: T1
#[test]
fn machines_that_move_together_need_room_together() {
    let mut bare = TestRules::new();
    let [from, other] = [("from", 8), ("other", 4)].map(|(text, count)| host(&mut bare, text, cpus(count)));
    for text in ["a", "b"] {
        vm(&mut bare, text, from, cpus(3));
    }
    let refused = bare.submit(migrate(&[from])).unwrap_err().to_string();
    assert!(refused.contains("take b: it needs 3 CPUs; other has 1 of 4 CPUs free"), "{refused}");
    bare.submit(Command::ChangeCapacity { host: other, capacity: cpus(6) }).unwrap();
    bare.submit(migrate(&[from])).unwrap();
    bare.complete_all();
    assert_eq!([from, other].map(|host| used(&bare, host).0), [0, 6]);
}

/// promise: T1
#[test]
fn work_that_waits_for_room_goes_on_when_there_is_room() {
    let mut bare = TestRules::new();
    let [ill, well] = [("ill", 8), ("well", 8)].map(|(text, count)| host(&mut bare, text, cpus(count)));
    let mover = vm(&mut bare, "mover", ill, cpus(6));
    let blocker = vm(&mut bare, "blocker", well, cpus(4));
    bare.submit(Command::DegradeHost { host: ill, fails_in: None }).unwrap();
    bare.settle();
    let (id, hold) = bare.cluster.held().next().unwrap();
    assert_eq!(hold, Hold::NoHost);
    let plan = &bare.cluster.maintenance(id).unwrap().plan;
    let why = bare.cluster.lack_of_room(plan).unwrap();
    assert_eq!(why, "mover needs 6 CPUs; well has 4 of 8 CPUs free");
    for (free, room) in [
        (Command::Resize { machine: blocker, size: cpus(2) }, "a smaller machine"),
        (Command::ChangeCapacity { host: well, capacity: cpus(10) }, "a larger host"),
        (Command::ChangeCapacity { host: well, capacity: Size::NONE }, "a host without a limit"),
        (Command::ChangePower { machine: blocker, change: PowerChange::Deallocate }, "a deallocation"),
        (Command::Delete(blocker), "a deletion"),
        (Command::Forget(blocker), "a machine that is forgotten"),
        (Command::Resize { machine: mover, size: cpus(4) }, "a smaller machine that waits"),
    ] {
        let mut trial = TestRules { cluster: bare.cluster.clone(), now: bare.now };
        trial.submit(free).unwrap();
        trial.complete_all();
        trial.complete_all();
        assert_eq!(host_of(&trial, mover), well, "{room}");
        assert!(!trial.cluster.room_of(well).is_exceeded(), "{room}");
    }
    assert_eq!(host_of(&bare, mover), ill);
}

/// promise: T1
#[test]
fn a_failed_host_restarts_machines_only_where_there_is_room() {
    let mut bare = TestRules::new();
    let [bad, good] = [("bad", 8), ("good", 4)].map(|(text, count)| host(&mut bare, text, cpus(count)));
    let machines = ["a", "b"].map(|text| vm(&mut bare, text, bad, cpus(3)));
    bare.submit(Command::FailHost(bad)).unwrap();
    bare.complete_all();
    assert_eq!(machines.map(|machine| host_of(&bare, machine)), [good, bad]);
    assert_eq!(used(&bare, good), (3, 0));
}

/// promise: E6
#[test]
fn facts_are_recorded_beyond_the_capacity() {
    let mut bare = TestRules::new();
    let [one, two] = [("one", 4), ("two", 4)].map(|(text, count)| host(&mut bare, text, cpus(count)));
    let (a, b) = (vm(&mut bare, "a", one, cpus(3)), vm(&mut bare, "b", two, cpus(3)));
    bare.submit(Command::Move { machine: a, to: two, planned: PlannedWork::Refuses }).unwrap();
    assert_eq!((used(&bare, two), bare.cluster.room_of(two).is_exceeded()), ((6, 0), true));
    bare.submit(Command::Resize { machine: b, size: cpus(9) }).unwrap();
    bare.submit(Command::ChangeCapacity { host: two, capacity: cpus(1) }).unwrap();
    assert_eq!((host_of(&bare, b), used(&bare, two)), (two, (12, 0)));
    assert_eq!(bare.cluster.maintenances().count(), 0, "nothing is evicted");
    assert_eq!(restored(&bare.cluster), bare.cluster);
}

/// promise: T1
#[test]
fn instances_have_the_size_of_their_scale_set() {
    let mut bare = TestRules::new();
    let only = host(&mut bare, "only", cpus(8));
    let set = bare.scale_set("web", Orchestration::Flexible, Profile::default());
    let admit = Command::AdmitInstance { scale_set: set, placement: at(0, 0), number: None };
    bare.submit(admit.clone()).unwrap();
    bare.submit(Command::ResizeInstances { scale_set: set, size: cpus(3) }).unwrap();
    bare.submit(admit.clone()).unwrap();
    assert_eq!((used(&bare, only), bare.cluster.instance_size(set)), ((6, 0), cpus(3)));
    assert!(matches!(bare.submit(admit), Err(Refusal::HostFull { .. })));
    let one = Command::Resize { machine: MachineId(0), size: cpus(1) };
    assert!(matches!(bare.submit(one), Err(Refusal::PartOfScaleSet(_))));
    assert_eq!(restored(&bare.cluster), bare.cluster);
}

/// Reads of a search do not grow with the number of full hosts.
#[cfg(debug_assertions)]
#[test]
fn full_hosts_cost_nothing() {
    let mut bare = TestRules::new();
    let from = host(&mut bare, "from", Size::NONE);
    let mover = vm(&mut bare, "mover", from, cpus(2));
    for number in 0..2_000 {
        host(&mut bare, &format!("h{number}"), cpus(1));
    }
    let refused = bare.ask(&Command::Redeploy(mover)).unwrap_err().to_string();
    assert!(refused.contains("and at least 996 more cannot take it either"), "{refused}");
    let free = host(&mut bare, "free", cpus(4));
    let before = reads();
    let changes = bare.ask(&Command::Redeploy(mover)).unwrap();
    assert!(reads() - before < 100, "{}", reads() - before);
    let Some(Change::Started { actions, .. }) = changes.last() else { panic!("{changes:?}") };
    assert_eq!(actions[0].impact.destination(), Some(free));
}
