//! The journal in a directory: what was appended is found again, and what is not a journal is not taken for one.

#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test world may be blunt"
)]

mod transfer;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

use forewarn_control::ClusterId;
use forewarn_control::{ClusterEntry, ControlState, Entry, INCARNATION_STEP, Record, Stream, shared};
use forewarn_control::{MachineDetails, ResourceGroupRef, Site};
use forewarn_lifecycle::*;
use forewarn_observer::ObservedCluster;
use forewarn_observer::random::{build, layouts, random_operations};
use forewarn_store::{
    AppendError, IfMissing, Journal, OpenError, Options, Recovered, accept_loss, check, export, import,
};
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use crate::support::{append, fold, fold_if_wanted};

const CLUSTER: Stream = Stream::Cluster(ClusterId::DEFAULT);

const SEED: Seed = Seed([7; 16]);

fn options(fold_after: u64) -> Options {
    Options { fold_after, ..Options::new(SEED, Now::at_millis(1_000)) }
}

fn open(directory: &Path) -> (Journal, Recovered) {
    Journal::open(directory, &options(50)).unwrap()
}

fn host(number: u32) -> Record {
    let name = Name::new(&format!("h{number}")).unwrap();
    let change = Change::HostAdmitted { host: HostId(number), name, zone: None };
    Record {
        now: Now::at_millis(1_000 + i64::from(number)),
        entry: Entry::Cluster(ClusterId::DEFAULT, ClusterEntry::Rules(change)),
    }
}

fn after(records: &[Record]) -> ControlState {
    let mut state = ControlState::new(SEED);
    records.iter().for_each(|record| drop(state.apply(record)));
    state
}

/// A directory with the journal of some hosts, and the file.
fn with_hosts(count: u32) -> (TempDir, ControlState) {
    let directory = tempdir().unwrap();
    let records: Vec<_> = (0..count).map(host).collect();
    let (journal, _) = open(directory.path());
    append(&journal, &records).unwrap();
    journal.close().unwrap();
    (directory, after(&records))
}

fn records(world: &ObservedCluster) -> Vec<Record> {
    let journal = world.journal.iter();
    journal.map(|(now, change)| Record::rules(*now, ClusterId::DEFAULT, change.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48)
    ))]

    /// promise: D1
    #[test]
    fn a_journal_that_is_opened_again_gives_the_running_state(
        layout in layouts(),
        history in random_operations(),
        batches in prop::collection::vec(1usize..30, 1..40),
        fold_after in 1u64..120,
    ) {
        let mut world = build(&layout);
        history.iter().for_each(|happening| world.happen(happening));
        let records = records(&world);
        let directory = tempdir().unwrap();
        let mut state = ControlState::new(SEED);
        let mut rest = &records[..];
        for (round, size) in batches.iter().cycle().enumerate() {
            if rest.is_empty() {
                break;
            }
            let (journal, found) = Journal::open(directory.path(), &options(fold_after)).unwrap();
            prop_assert_eq!(&found.state, &state);
            // Some life, then a stop that may come at any moment of folding.
            for _ in 0..5 + round % 7 {
                let (batch, later) = rest.split_at((*size).min(rest.len()));
                append(&journal, batch).unwrap();
                batch.iter().for_each(|record| drop(state.apply(record)));
                fold_if_wanted(&journal, &state);
                rest = later;
            }
        }
        let (journal, found) = Journal::open(directory.path(), &options(fold_after)).unwrap();
        prop_assert_eq!(&found.state, &state);
        prop_assert_eq!(found.state.cluster(ClusterId::DEFAULT).unwrap().rules(), &world.cluster);
        prop_assert_eq!(journal.length(), records.len() as u64);
        journal.close().unwrap();
        prop_assert_eq!(check(directory.path()).unwrap().records, records.len() as u64);
    }

    /// promise: D2, D4
    #[test]
    fn an_import_goes_on_with_other_ids_and_later_documents(layout in layouts(), history in random_operations()) {
        let mut world = build(&layout);
        history.iter().for_each(|happening| world.happen(happening));
        let (from, to, file) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
        let (journal, _) = open(from.path());
        append(&journal, &records(&world)).unwrap();
        journal.close().unwrap();
        let file = file.path().join("export");
        export(from.path(), &mut fs::File::create(&file).unwrap()).unwrap();
        let other = Options { seed: Seed([8; 16]), ..options(50) };
        import(&file, to.path(), &other).unwrap();
        let (_journal, found) = Journal::open(to.path(), &options(50)).unwrap();
        let cluster = found.state.cluster(ClusterId::DEFAULT).unwrap().rules();
        prop_assert_eq!(found.identity, SEED);
        prop_assert_eq!(cluster.brake(), Brake::On);
        for ((id, tenant), (also, before)) in cluster.tenants().zip(world.cluster.tenants()) {
            prop_assert_eq!((id, &tenant.name, tenant.machines()), (also, &before.name, before.machines()));
            prop_assert_eq!(tenant.incarnation, before.incarnation + INCARNATION_STEP);
            prop_assert_eq!(tenant.events().len(), before.events().len());
            for (event, old) in tenant.events().iter().zip(before.events()) {
                prop_assert_eq!((&event.phase, event.maintenance), (&old.phase, old.maintenance));
                prop_assert!(world.cluster.event(event.id()).is_none());
                prop_assert_eq!(cluster.event(event.id()), Some((id, event)));
            }
        }
        prop_assert!(cluster.machines().eq(world.cluster.machines()));
        prop_assert!(cluster.hosts().eq(world.cluster.hosts()));
        prop_assert!(cluster.unfinished().eq(world.cluster.unfinished()));
        // Work that is known keeps the names of its actions, and no work to come has one of theirs.
        let name = |cluster: &Cluster, work| cluster.action_name(work, MachineId(0).into());
        let mut next = MaintenanceId(0);
        for work in cluster.maintenances().map(|maintenance| maintenance.plan.id) {
            prop_assert_eq!(name(cluster, work), name(&world.cluster, work));
            next = MaintenanceId(work.0 + 1);
        }
        let planned = world.journal.iter().filter_map(|(_, change)| match change {
            Change::Planned(plan) => Some(MaintenanceId(plan.id.0 + 1)),
            _ => None,
        });
        let next = planned.chain([next]).max().unwrap_or(next);
        prop_assert_ne!(name(cluster, next), name(&world.cluster, next));
        prop_assert_eq!(found.unread, waiting(cluster));
        // A loss that is accepted is treated alike.
        lose_last_commit(from.path());
        let is_short = matches!(Journal::open(from.path(), &options(50)), Err(OpenError::Short { .. }));
        prop_assert!(is_short);
        accept_loss(from.path(), &other).unwrap();
        let (_journal, found) = Journal::open(from.path(), &options(50)).unwrap();
        let again = found.state.cluster(ClusterId::DEFAULT).unwrap().rules();
        prop_assert!(again.tenants().eq(cluster.tenants()));
        prop_assert_eq!(found.unread, waiting(again));
    }
}

/// The announcements of a cluster that wait.
fn waiting(cluster: &Cluster) -> Vec<(ClusterId, MaintenanceId)> {
    let waiting = cluster.maintenances().filter(|maintenance| maintenance.wait().is_some());
    let announced =
        waiting.filter(|maintenance| maintenance.plan.parts.iter().any(|part| part.announcement.is_some()));
    announced.map(|maintenance| (ClusterId::DEFAULT, maintenance.plan.id)).collect()
}

/// Appends a record to a journal, and puts back the file from before it.
fn lose_last_commit(directory: &Path) {
    let file = directory.join("journal.db");
    let before = fs::read(&file).unwrap();
    let (journal, _) = open(directory);
    journal.append(Stream::Shared, &[Record::clock(Now::at_millis(5))], &[]).unwrap();
    journal.close().unwrap();
    fs::write(file, before).unwrap();
}

#[test]
fn a_new_journal_is_empty_and_has_its_seed_for_ever() {
    let directory = tempdir().unwrap();
    let inside = directory.path().join("a/b");
    let (journal, found) = open(&inside);
    assert_eq!(found.state, ControlState::new(SEED));
    assert_eq!((found.identity, found.created.millis(), found.replayed), (SEED, 1_000, 0));
    journal.close().unwrap();
    let other = Options::new(Seed([9; 16]), Now::at_millis(9_000));
    let (_journal, found) = Journal::open(&inside, &other).unwrap();
    assert_eq!(found.state, ControlState::new(SEED));
    assert_eq!((found.identity, found.created.millis()), (SEED, 1_000));
}

/// promise: N4
#[test]
fn the_highest_that_each_clock_has_shown_is_kept() {
    let directory = tempdir().unwrap();
    let at = |wall, steady| Record {
        now: Now { wall: Timestamp::from_millis(wall), steady: Steady::from_millis(steady) },
        entry: Entry::Shared(shared::Change::Clock),
    };
    let (journal, _) = open(directory.path());
    journal.append(Stream::Shared, &[at(5_000, 7_000), at(9_000, 2_000)], &[]).unwrap();
    journal.append(Stream::Shared, &[at(3_000, 3_000)], &[]).unwrap();
    drop(journal);
    let (_journal, found) = open(directory.path());
    assert_eq!((found.clock.wall.millis(), found.clock.steady.millis()), (9_000, 7_000));
    assert_eq!(found.replayed, 3);
}

/// promise: D1
#[test]
fn what_the_shell_knows_survives_and_goes_with_its_machine() {
    let directory = tempdir().unwrap();
    let mut world = ObservedCluster::new();
    world
        .submit(Command::AdmitHost { name: Name::new("h").unwrap(), zone: None, capacity: Size::NONE })
        .unwrap();
    let placement = Placement {
        host: HostId(0),
        update_domain: UpdateDomain(0),
        fault_domain: FaultDomain(0),
        size: Size::NONE,
    };
    for name in ["stays", "goes"] {
        let (name, priority) = (Name::new(name).unwrap(), Priority::Regular);
        let (profile, policy) = (Profile::default(), Policy::default());
        world.submit(Command::AdmitStandalone { name, placement, priority, profile, policy }).unwrap();
    }
    let before = world.journal.len();
    world.submit(Command::Delete(MachineId(1))).unwrap();
    world.settle();
    world.complete_all();
    let mut all = records(&world);
    let details = MachineDetails {
        addresses: vec![[10, 0, 0, 4].into()],
        tags: [("role".to_owned(), "db".to_owned())].into(),
        home: Some(ResourceGroupRef { resource_group: "shop".to_owned(), location: "west".to_owned() }),
    };
    let site = Site { location: "north".to_owned(), ..Site::default() };
    let now = world.now;
    for machine in [MachineId(0), MachineId(1)] {
        let entry =
            Entry::Cluster(ClusterId::DEFAULT, ClusterEntry::Described { machine, details: details.clone() });
        all.insert(before, Record { now, entry });
    }
    all.push(Record::in_cluster(now, ClusterId::DEFAULT, ClusterEntry::Site(site.clone())));
    let (journal, _) = open(directory.path());
    append(&journal, &all).unwrap();
    drop(journal);
    // From records, and from rows.
    for _ in 0..2 {
        let (journal, found) = open(directory.path());
        assert_eq!(found.state.cluster(ClusterId::DEFAULT).unwrap().site(), &site);
        assert_eq!(
            found.state.cluster(ClusterId::DEFAULT).unwrap().details().iter().collect::<Vec<_>>(),
            [(MachineId(0), &details)]
        );
        // The streams take turns.
        fold(&journal, Stream::Shared, &found.state);
        fold(&journal, CLUSTER, &found.state);
        journal.append(Stream::Shared, &[Record::clock(now)], &[]).unwrap();
        journal.append(Stream::Shared, &[Record::clock(now)], &[]).unwrap();
    }
    let (_journal, found) = open(directory.path());
    assert_eq!(found.replayed, 2);
}

/// promise: D5
#[test]
fn a_journal_does_not_grow_for_ever() {
    let directory = tempdir().unwrap();
    let (journal, found) = open(directory.path());
    let mut state = found.state;
    let mut folded = 0;
    for number in 0..2_000i64 {
        let record = Record::clock(Now::at_millis(number));
        append(&journal, std::slice::from_ref(&record)).unwrap();
        state.apply(&record);
        folded += fold_if_wanted(&journal, &state);
    }
    journal.close().unwrap();
    assert!(folded >= 20, "{folded}");
    let found = check(directory.path()).unwrap();
    assert!(found.replayed <= 100 && found.records == 2_000, "{found:?}");
    let size = fs::metadata(directory.path().join("journal.db")).unwrap().len();
    assert!(size < 100_000, "{size}");
}

/// promise: D5
#[test]
fn one_owner_at_a_time() {
    let (directory, _) = with_hosts(1);
    let (journal, _) = open(directory.path());
    let in_use = |problem: OpenError| assert!(matches!(problem, OpenError::InUse(_)), "{problem}");
    in_use(Journal::open(directory.path(), &options(50)).unwrap_err());
    in_use(check(directory.path()).unwrap_err());
    in_use(export(directory.path(), &mut Vec::new()).unwrap_err());
    journal.close().unwrap();
    check(directory.path()).unwrap();
}

/// promise: D4
#[test]
fn what_is_no_journal_is_refused_and_left_as_it_is() {
    for content in [&b""[..], b"short", &[b'x'; 5_000], b"SQLite format 3\0 and then something else"] {
        let directory = tempdir().unwrap();
        let file = directory.path().join("journal.db");
        fs::write(&file, content).unwrap();
        let problem = Journal::open(directory.path(), &options(50)).unwrap_err();
        assert!(matches!(problem, OpenError::Foreign(_)), "{problem}");
        assert!(problem.to_string().contains("\n  hint: "), "{problem}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
    let (directory, _) = with_hosts(1);
    fs::rename(directory.path().join("journal.db"), directory.path().join("journal.db-wal")).unwrap();
    let problem = Journal::open(directory.path(), &options(50)).unwrap_err();
    assert!(matches!(problem, OpenError::Damaged { .. }), "{problem}");
}

/// promise: D4
#[test]
fn a_later_format_is_refused_by_name() {
    let (directory, _) = with_hosts(1);
    let file = directory.path().join("journal.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[63] = 4;
    fs::write(&file, &bytes).unwrap();
    let problem = Journal::open(directory.path(), &options(50)).unwrap_err();
    assert!(matches!(problem, OpenError::Newer { found: 4, known: 2, .. }), "{problem}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

/// promise: D1
#[test]
fn an_interrupted_first_start_is_started_again() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("journal.new"), b"half of").unwrap();
    fs::write(directory.path().join("journal.new-journal"), b"half of").unwrap();
    let (journal, found) = open(directory.path());
    assert_eq!(found.state, ControlState::new(SEED));
    journal.close().unwrap();
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["audit.db", "journal.db", "journal.reach", "lock"]);
}

/// promise: D5
#[test]
fn only_the_owner_may_read_what_holds_secrets() {
    let directory = tempdir().unwrap();
    let inside = directory.path().join("data");
    let (journal, _) = open(&inside);
    journal.append(CLUSTER, &[host(0)], &[]).unwrap();
    let copy = directory.path().join("copy");
    let (tell, told) = mpsc::channel();
    journal.copy_then(&copy, move |result| tell.send(result).unwrap());
    told.recv().unwrap().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inside), 0o700);
    for path in ["journal.db", "journal.db-wal", "journal.reach", "lock"]
        .map(|name| inside.join(name))
        .iter()
        .chain([&copy])
    {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
}

#[test]
fn batches_that_wait_are_committed_together_and_answered_in_order() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let (tell, told) = mpsc::channel();
    for number in 0..100 {
        let tell = tell.clone();
        journal
            .append_then(CLUSTER, &[host(number)], &[], move |result| tell.send((number, result)).unwrap());
    }
    journal.append_then(CLUSTER, &[], &[], move |result| tell.send((100, result)).unwrap());
    let answers: Vec<_> = told.iter().collect();
    assert!(answers.iter().map(|(number, _)| *number).eq(0..=100), "{answers:?}");
    assert!(answers.iter().all(|(_, result)| result.is_ok()), "{answers:?}");
    assert_eq!(journal.length(), 100);
    drop(journal);
    assert_eq!(open(directory.path()).1.state, after(&(0..100).map(host).collect::<Vec<_>>()));
}

#[test]
fn a_record_beyond_all_limits_is_not_written() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let site = Site { location: "x".repeat(2 << 20), ..Site::default() };
    let record = Record::in_cluster(Now::at_millis(0), ClusterId::DEFAULT, ClusterEntry::Site(site));
    assert!(matches!(journal.append(CLUSTER, &[host(0), record], &[]), Err(AppendError::TooLarge(_))));
    drop(journal);
    assert_eq!(open(directory.path()).1.state, ControlState::new(SEED));
}

/// promise: C6
#[test]
fn the_reason_of_a_failure_is_kept_until_its_work_is_over() {
    let (from, to, files) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let (now, cluster, machine) = (Now::at_millis(2_000), ClusterId::DEFAULT, MachineId(1));
    let failed = |work: u64| {
        let (maintenance, reason) = (MaintenanceId(work), format!("no domain {work}"));
        Record::in_cluster(now, cluster, ClusterEntry::Failed { maintenance, target: machine.into(), reason })
    };
    let (journal, _) = open(from.path());
    journal.append(CLUSTER, &[failed(3), failed(4), failed(5)], &[]).unwrap();
    // None of that work is there any more when it is completed.
    let over =
        Change::Completed { maintenance: MaintenanceId(4), target: machine.into(), report: Report::Failed };
    journal.append(CLUSTER, &[Record::rules(now, cluster, over)], &[]).unwrap();
    journal.close().unwrap();
    let file = files.path().join("export");
    export(from.path(), &mut fs::File::create(&file).unwrap()).unwrap();
    import(&file, to.path(), &options(50)).unwrap();
    for place in [from.path(), to.path()] {
        let (_journal, found) = open(place);
        let estate = found.state.cluster(cluster).unwrap();
        let kept: Vec<_> = (3..6).flat_map(|work| estate.failures_of(MaintenanceId(work))).collect();
        assert_eq!(kept, [(machine.into(), "no domain 3"), (machine.into(), "no domain 5")]);
    }
}

/// promise: D4
#[test]
fn a_journal_that_must_be_there_is_not_made_anew() {
    let directory = tempdir().unwrap();
    let inside = directory.path().join("data");
    let must = Options { missing: IfMissing::Refuse, ..options(50) };
    assert!(matches!(Journal::open(&inside, &must), Err(OpenError::Missing(_))));
    assert!(matches!(check(&inside), Err(OpenError::Missing(_))));
    assert!(!inside.exists());
    // A mount point without its disk.
    fs::create_dir(&inside).unwrap();
    assert!(matches!(Journal::open(&inside, &must), Err(OpenError::Missing(_))));
    assert!(matches!(export(&inside, &mut Vec::new()), Err(OpenError::Missing(_))));
    open(&inside).0.close().unwrap();
    Journal::open(&inside, &must).unwrap();
}
