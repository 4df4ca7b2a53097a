//! Callers and documents that are made when they are needed, and follow the published state.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use forewarn_imds::{Document, Naming};

use super::*;
use crate::published::PollDuty;

const WEST: ClusterId = ClusterId(1);
const EAST: ClusterId = ClusterId(2);
const TENANT: TenantId = TenantId(0);

/// A published state: the incarnation of each tenant, and the tenant of each machine.
#[derive(Default)]
struct TestState(Mutex<BTreeMap<ClusterId, TestCluster>>);

#[derive(Clone, Default)]
struct TestCluster {
    incarnations: BTreeMap<TenantId, u64>,
    tenants: BTreeMap<MachineId, TenantId>,
}

impl TestState {
    /// A state in which both clusters have a tenant with so many machines.
    fn with_machines(count: u32) -> Self {
        let tenants = (0..count).map(|number| (MachineId(number), TENANT)).collect();
        let cluster = TestCluster { incarnations: BTreeMap::from([(TENANT, 1)]), tenants };
        Self(Mutex::new(BTreeMap::from([(WEST, cluster.clone()), (EAST, cluster)])))
    }

    fn change<T>(&self, cluster: ClusterId, change: impl FnOnce(&mut TestCluster) -> T) -> T {
        change(self.0.lock().unwrap().entry(cluster).or_default())
    }
}

impl PublishedState for TestState {
    fn tenant_of(&self, id: CallerId) -> Option<TenantId> {
        self.change(id.cluster, |cluster| cluster.tenants.get(&id.machine).copied())
    }

    fn document_of(&self, cluster: ClusterId, tenant: TenantId) -> Option<PublishedDocument> {
        let incarnation = self.change(cluster, |cluster| cluster.incarnations.get(&tenant).copied())?;
        let document = Document { incarnation, events: Vec::new(), naming: Naming::Machines };
        Some(PublishedDocument::new(document, PollDuty::None, incarnation))
    }
}

fn id(cluster: ClusterId, number: u32) -> CallerId {
    CallerId { cluster, machine: MachineId(number) }
}

fn publish(directory: &Directory, state: &TestState, incarnation: u64) {
    state.change(WEST, |cluster| cluster.incarnations.insert(TENANT, incarnation));
    directory.follow(state, WEST, DirectoryChanges { tenants: vec![TENANT], ..DirectoryChanges::default() });
}

/// promise: M3
#[test]
fn a_caller_is_made_once_and_shares_the_document_of_its_tenant() {
    let (directory, state) = (Directory::default(), TestState::with_machines(2));
    assert!(directory.known_caller(id(WEST, 0)).is_none());
    let [one, again, second] = [0, 0, 1].map(|number| directory.caller(&state, id(WEST, number)).unwrap());
    assert!(Arc::ptr_eq(&one, &again) && Arc::ptr_eq(&one.slot, &second.slot));
    assert_eq!((one.id(), second.id()), (id(WEST, 0), id(WEST, 1)));
    let east = directory.caller(&state, id(EAST, 0)).unwrap();
    assert!(!Arc::ptr_eq(&one.slot, &east.slot), "a machine of another cluster may have the same number");
    assert!(directory.caller(&state, id(WEST, 2)).is_none(), "it does not exist");
}

/// promise: M3
#[test]
fn a_machine_that_is_gone_is_forgotten() {
    let (directory, state) = (Directory::default(), TestState::with_machines(2));
    let [one, _] = [WEST, EAST].map(|cluster| directory.caller(&state, id(cluster, 0)).unwrap());
    state.change(WEST, |cluster| *cluster = TestCluster::default());
    let gone_machines = vec![MachineId(0), MachineId(1)];
    directory.follow(&state, WEST, DirectoryChanges { tenants: vec![TENANT], gone_machines });
    assert!(directory.known_caller(one.id()).is_none() && directory.caller(&state, one.id()).is_none());
    assert!(directory.known_document(WEST, TENANT).is_none());
    assert!(
        directory.known_caller(id(EAST, 0)).is_some() && directory.known_document(EAST, TENANT).is_some()
    );
}

/// promise: M3
#[test]
fn documents_follow_a_state_that_is_replaced() {
    let (directory, state) = (Directory::default(), TestState::with_machines(3));
    let [zero, one] = [0, 1].map(|number| directory.caller(&state, id(WEST, number)).unwrap());
    state.change(WEST, |cluster| {
        cluster.incarnations.insert(TENANT, 7);
        cluster.tenants.remove(&MachineId(1));
    });
    let before = directory.generation();
    directory.follow_all(&state, WEST);
    assert_eq!(zero.slot.read().document.incarnation, 7);
    assert!(directory.known_caller(zero.id()).is_some() && directory.known_caller(one.id()).is_none());
    assert_ne!(directory.generation(), before);
}

/// The work of a change depends on the machines that have called, not on those that exist.
#[test]
fn machines_that_never_call_cost_nothing() {
    let (directory, state) = (Directory::default(), TestState::with_machines(100_000));
    directory.caller(&state, id(WEST, 7)).unwrap();
    directory.follow_all(&state, WEST);
    let tenants = (0..100_000).map(TenantId).collect();
    let gone_machines = (8..100_000).map(MachineId).collect();
    directory.follow(&state, WEST, DirectoryChanges { tenants, gone_machines });
    assert_eq!((directory.callers.copies(), directory.documents.copies()), (1, 1));
    assert_eq!((directory.callers.keys().len(), directory.documents.keys().len()), (1, 1));
}

/// A batch copies each shard at most once, however many of its machines are gone.
#[test]
fn a_batch_copies_each_shard_once() {
    let (directory, state) = (Directory::default(), TestState::with_machines(5_000));
    (0..5_000).for_each(|number| drop(directory.caller(&state, id(WEST, number)).unwrap()));
    let before = directory.callers.copies();
    let gone_machines = (0..5_000).map(MachineId).collect();
    directory.follow(&state, WEST, DirectoryChanges { tenants: Vec::new(), gone_machines });
    let copies = directory.callers.copies() - before;
    assert!(directory.callers.keys().is_empty() && copies <= 1_024, "{copies} copies");
}

/// A document that a first poll makes while the next one is published is not missed.
///
/// promise: M3
#[test]
fn no_change_is_missed_by_a_document_that_is_made_meanwhile() {
    for round in 0..200 {
        let (directory, state) = (Directory::default(), TestState::with_machines(1));
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for incarnation in 2..20 {
                    publish(&directory, &state, incarnation);
                }
                is_done.store(true, Ordering::Release);
            });
            for _ in 0..round % 20 {
                std::hint::spin_loop();
            }
            let caller = directory.caller(&state, id(WEST, 0)).unwrap();
            while !is_done.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            assert_eq!(caller.slot.read().document.incarnation, 19, "round {round}");
        });
    }
}

#[tokio::test]
async fn after_a_restart_nothing_is_known_and_waiting_requests_end_with_the_new_document() {
    let (directory, state) = (Directory::default(), TestState::with_machines(2));
    let caller = directory.caller(&state, id(WEST, 0)).unwrap();
    let east = directory.caller(&state, id(EAST, 0)).unwrap();
    let generation = directory.generation();
    state.change(WEST, |cluster| cluster.incarnations.insert(TENANT, 7));
    let waiting = (caller.slot.differs_from(1), east.slot.differs_from(1));
    let restarting = async { directory.restart(&state) };
    tokio::join!(waiting.0, waiting.1, restarting);
    assert_eq!(caller.slot.read().document.incarnation, 7);
    assert_eq!(east.slot.read().document.incarnation, 1, "a request ends although its document is the same");
    assert!(directory.known_caller(caller.id()).is_none() && directory.generation() != generation);
    let again = directory.caller(&state, id(WEST, 0)).unwrap();
    assert!(!Arc::ptr_eq(&again.slot, &caller.slot));
    publish(&directory, &state, 8);
    assert_eq!((again.slot.read().document.incarnation, caller.slot.read().document.incarnation), (8, 7));
}
