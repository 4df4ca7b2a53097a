//! Resources and operations of a cluster.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use forewarn_control::limits::{OPERATION_WAITS_MAX, OPERATIONS_OPEN_MAX};
use forewarn_control::refusal::Refusal;
use forewarn_control::resources::{
    Body, Leaving, Link, NewOperation, Operation, OperationResult, ResourceChange, ResourceCommand,
};
use forewarn_control::{ClusterEntry, ClusterId, ControlState, Record, RestoringState};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, Seed, Steady, Timestamp};
use proptest::prelude::*;

const CLUSTER: ClusterId = ClusterId::DEFAULT;
const NOW: Now = Now { wall: Timestamp::from_millis(1_000_000), steady: Steady::START };

/// A state that resources are written into.
struct Written {
    state: ControlState,
    records: Vec<Record>,
}

impl Written {
    fn new() -> Self {
        Self { state: ControlState::new(Seed([1; 16])), records: Vec::new() }
    }

    fn submit(&mut self, command: &ResourceCommand) -> Result<Vec<ResourceChange>, Refusal> {
        let resources = self.state.cluster(CLUSTER).unwrap().resources();
        let changes = resources.decide(NOW, CLUSTER, command)?;
        for change in &changes {
            let record = Record::in_cluster(NOW, CLUSTER, ClusterEntry::Resource(change.clone()));
            self.state.apply(&record);
            self.records.push(record);
        }
        Ok(changes)
    }

    fn operation(&self, name: &str) -> &Operation {
        self.state.operation(name).unwrap()
    }
}

fn open(name: &str, waits: impl IntoIterator<Item = u64>) -> ResourceCommand {
    let waits = waits.into_iter().map(MaintenanceId).collect();
    let (name, about) = (name.to_owned(), "/a".to_owned());
    ResourceCommand::Open(NewOperation { number: 0, name, about, waits, token: None })
}

fn put(id: &str, link: Option<u32>, body: &[u8]) -> ResourceCommand {
    let link = link.map(|machine| Link::Machine(MachineId(machine)));
    ResourceCommand::Put { id: id.to_owned(), link, body: Body(body.into()), notes: Body::default() }
}

/// promise: C3, Z3
#[test]
fn open_operations_are_limited_and_operations_that_have_ended_need_no_room() {
    let mut written = Written::new();
    let room = |written: &Written, commands| {
        written.state.cluster(CLUSTER).unwrap().resources().check_room_for_operation("/a", commands)
    };
    let too_long = written.submit(&open("long", 0..=OPERATION_WAITS_MAX as u64)).unwrap_err();
    assert_eq!(too_long.to_string(), "too many machines in an operation: at most 10000");
    assert_eq!(room(&written, OPERATION_WAITS_MAX + 1), Err(too_long));
    for number in 0..OPERATIONS_OPEN_MAX {
        written.submit(&open(&number.to_string(), [1])).unwrap();
    }
    let too_many = written.submit(&open("more", [1])).unwrap_err();
    assert_eq!(too_many.to_string(), "too many operations under way: at most 10000");
    assert_eq!(room(&written, 1), Err(too_many));
    assert_eq!(room(&written, 0), Ok(()));
    written.submit(&open("over", [])).unwrap();
}

#[test]
fn an_operation_ends_with_the_last_work_and_the_worst_result() {
    let mut written = Written::new();
    written.submit(&open("both", [1, 2])).unwrap();
    let end = |work, result| ResourceCommand::EndWork { maintenance: MaintenanceId(work), result };
    written.submit(&end(1, OperationResult::Canceled)).unwrap();
    assert!(written.operation("both").is_open());
    written.submit(&end(2, OperationResult::Succeeded)).unwrap();
    let both = written.operation("both");
    assert_eq!((both.ended, &both.result), (Some(NOW.wall), &OperationResult::Canceled));
    assert_eq!(written.submit(&end(2, OperationResult::Succeeded)).unwrap(), []);
}

#[test]
fn a_resource_is_found_in_every_spelling_and_goes_with_everything_below_it() {
    let mut written = Written::new();
    written.submit(&put("/G", None, b"{}")).unwrap();
    written.submit(&put("/G/VM1", Some(1), b"{}")).unwrap();
    assert_eq!(written.submit(&put("/g/vm1", None, b"{}")).unwrap(), [], "nothing has changed");
    let taken = written.submit(&put("/g/other", Some(1), b"{}")).unwrap_err();
    assert_eq!(taken, Refusal::LinkTaken("/G/VM1".to_owned()));
    let found = written.state.resource("/g/vm1").unwrap();
    assert_eq!((found.id.as_str(), found.edition, found.cluster), ("/G/VM1", 1, CLUSTER));
    assert_eq!(written.submit(&ResourceCommand::Remove("/g".to_owned())).unwrap().len(), 2);
    assert_eq!(written.state.resources_below("").count(), 0);
}

fn commands() -> impl Strategy<Value = ResourceCommand> {
    let ids = (0..2u8, 0..3u8, any::<bool>()).prop_map(|(group, inside, is_upper)| {
        let id = if inside == 0 { format!("/g{group}") } else { format!("/g{group}/vm{inside}") };
        if is_upper { id.to_uppercase() } else { id }
    });
    let bodies = prop::collection::vec(any::<u8>(), 0..20);
    let put =
        (ids.clone(), prop::option::of(0..3u32), bodies).prop_map(|(id, link, body)| put(&id, link, &body));
    let leaving = prop_oneof![Just(Leaving::Stays), Just(Leaving::Leaves)];
    let mark = (ids.clone(), leaving).prop_map(|(id, leaving)| ResourceCommand::Mark { id, leaving });
    let waits = prop::collection::btree_set((0..5u64).prop_map(MaintenanceId), 0..3);
    let open = (0..20u8, ids.clone(), waits).prop_map(|(name, about, waits)| {
        let token = (name % 2 == 0).then_some(u32::from(name));
        let name = format!("operation {name}");
        ResourceCommand::Open(NewOperation { number: 0, name, about, waits, token })
    });
    let failed = OperationResult::Failed { code: "Failed".to_owned(), message: "it failed".to_owned() };
    let results = prop::sample::select(vec![OperationResult::Succeeded, OperationResult::Canceled, failed]);
    let end = (0..5u64, results)
        .prop_map(|(number, result)| ResourceCommand::EndWork { maintenance: MaintenanceId(number), result });
    prop_oneof![3 => put, 1 => ids.prop_map(ResourceCommand::Remove), 1 => mark, 3 => open, 3 => end]
}

proptest! {
    /// promise: C1
    #[test]
    fn resources_are_the_same_after_replay_and_after_a_fold(commands in prop::collection::vec(commands(), 0..60)) {
        let mut written = Written::new();
        for command in &commands {
            drop(written.submit(command));
        }
        let mut replayed = ControlState::new(Seed([1; 16]));
        written.records.iter().for_each(|record| drop(replayed.apply(record)));
        prop_assert_eq!(&replayed, &written.state);
        let mut restoring = RestoringState::default();
        written.state.clone().into_rows().try_for_each(|row| restoring.add(row)).unwrap();
        prop_assert_eq!(&restoring.finish().unwrap(), &written.state);
        let resources = written.state.cluster(CLUSTER).unwrap().resources();
        for (key, resource) in resources.below("") {
            prop_assert_eq!(written.state.resource(key), Some(resource));
            prop_assert!(resource.link.is_none_or(|link| resources.linked(link) == Some((key, resource))));
        }
        prop_assert!(written.state.resources_below("").eq(resources.below("")));
    }

    /// A copy that a reader holds stays as it was.
    /// promise: C1
    #[test]
    fn a_copy_of_resources_stays_as_it_was(
        commands in prop::collection::vec(commands(), 0..40),
        last in commands(),
    ) {
        let mut written = Written::new();
        for command in &commands {
            drop(written.submit(command));
        }
        let copy = written.state.clone();
        let mut rebuilt = ControlState::new(Seed([1; 16]));
        written.records.iter().for_each(|record| drop(rebuilt.apply(record)));
        drop(written.submit(&last));
        prop_assert_eq!(&copy, &rebuilt);
    }
}
