//! Moves of a journal into a realm on a simulated engine.

use std::path::Path;
use std::time::Duration;

use forewarn_lifecycle::{Command, Name, Seed, Size};
use forewarn_realm::{CallTimes, Engine, Keyspace, Realm, RealmCompleteness, RealmRecord, SimulatedEngine};
use forewarn_store::{OpenError, RealmMark, RealmStage};
use forewarn_types::Moment;

use super::{MigrationError, RealmPlan, cancel_migration, migrate};
use crate::clock::{ClockPlan, wall};
use crate::control_handle::ControlHandle;
use crate::hypervisor::Hypervisor;
use crate::log_length::LogLimits;

const SEED: Seed = Seed([3; 16]);

fn plan(engine: &SimulatedEngine) -> RealmPlan {
    RealmPlan {
        name: Name::new("one").unwrap(),
        engine: Engine::Simulated(engine.client()),
        keys: Keyspace::new("/forewarn/1/").unwrap(),
        listen: "127.0.0.1:0".parse().unwrap(),
        advertise: None,
        zone: None,
        clock_speed: None,
        log_limits: LogLimits::default(),
        compacts: true,
    }
}

fn open_alone(directory: &Path) -> Result<ControlHandle, OpenError> {
    ControlHandle::open(directory, SEED, ClockPlan::Real, Hypervisor::simulated())
}

async fn create_hosts(directory: &Path) {
    let control = open_alone(directory).unwrap();
    for name in ["h1", "h2"] {
        let name = Name::new(name).unwrap();
        control.submit(Command::AdmitHost { name, zone: None, capacity: Size::NONE }).await.unwrap();
    }
    control.stop().await;
}

fn hosts(control: &ControlHandle) -> usize {
    control.look(|state| state.cluster.hosts().count()).unwrap()
}

/// The realm and the mark that a move leaves when it is killed before its last step.
async fn interrupt(directory: &Path, plan: &RealmPlan) {
    let mark = RealmMark { realm: SEED, instance: Seed([4; 16]), stage: RealmStage::Moving };
    mark.write(directory).unwrap();
    let (created, completeness) = (Moment(wall()), RealmCompleteness::Importing);
    let record = RealmRecord {
        identity: SEED,
        created,
        format: 1,
        restores: 0,
        history: None,
        clock: None,
        completeness,
    };
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    realm.join(record).await.unwrap();
}

async fn join(directory: &Path, plan: RealmPlan) -> Result<ControlHandle, String> {
    let keep = Duration::from_secs(86_400);
    let joined = ControlHandle::join_realm(directory, plan, Hypervisor::simulated(), keep).await;
    joined.map(|(control, _)| control).map_err(|error| error.to_string())
}

/// promise: D5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_was_interrupted_is_cancelled_or_repeated() {
    let (engine, directory) = (SimulatedEngine::new(), tempfile::tempdir().unwrap());
    let (plan, directory) = (plan(&engine), directory.path());
    create_hosts(directory).await;
    interrupt(directory, &plan).await;
    assert!(matches!(open_alone(directory), Err(OpenError::Moving(_))));
    let refused = join(directory, plan.clone()).await.unwrap_err();
    assert!(refused.starts_with("a journal is being moved into the realm"), "{refused}");
    cancel_migration(directory, &plan).await.unwrap();
    assert!(engine.contents().is_empty());
    let none = cancel_migration(directory, &plan).await;
    assert!(matches!(none, Err(MigrationError::NotMoving(_))), "{none:?}");
    let control = open_alone(directory).unwrap();
    assert_eq!(hosts(&control), 2);
    control.stop().await;
    interrupt(directory, &plan).await;
    assert_eq!(migrate(directory, &plan).await.unwrap().hosts, 2);
    assert!(matches!(open_alone(directory), Err(OpenError::OfRealm(_))));
    let control = join(directory, plan).await.unwrap();
    assert_eq!(hosts(&control), 2);
    control.stop().await;
}

/// promise: D5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_was_killed_after_its_last_write_is_completed() {
    let (engine, directory) = (SimulatedEngine::new(), tempfile::tempdir().unwrap());
    let (plan, directory) = (plan(&engine), directory.path());
    create_hosts(directory).await;
    assert_eq!(migrate(directory, &plan).await.unwrap().hosts, 2);
    let member = RealmMark::read(directory).unwrap().unwrap();
    assert_eq!(member.stage, RealmStage::Member);
    let again = migrate(directory, &plan).await;
    assert!(matches!(again, Err(MigrationError::Member(_))), "{again:?}");
    // Killed before the directory was marked as that of a member.
    RealmMark { stage: RealmStage::Moving, ..member }.write(directory).unwrap();
    let complete = cancel_migration(directory, &plan).await;
    assert!(matches!(complete, Err(MigrationError::Complete(_))), "{complete:?}");
    let keys = engine.contents().len();
    migrate(directory, &plan).await.unwrap();
    assert_eq!((engine.contents().len(), RealmMark::read(directory).unwrap()), (keys, Some(member)));
    let control = join(directory, plan).await.unwrap();
    assert_eq!(hosts(&control), 2);
    control.stop().await;
}
