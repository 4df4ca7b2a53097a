//! Several clusters in one server, and requests that may be repeated.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::path::Path;
use std::sync::Arc;

use forewarn_control::ControlError;
use forewarn_control::refusal::Refusal;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, IdempotencyKey, RequestContext,
};
use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::{Change, NewClaim};
use forewarn_control::{ClusterId, ControlState, NamedCommand, Outcome};
use forewarn_lifecycle::{Name, Now, Seed, Timestamp};
use forewarn_metadata::{Caller, ControlPlane};
use forewarn_server::ClockCommand;
use forewarn_server::State;
use forewarn_server::{Clock, ClockPlan, ControlHandle, Hypervisor, Speed};
use forewarn_store::AuditQuery;

fn open(directory: &Path) -> ControlHandle {
    let clock = ClockPlan::Virtual { start: None, speed: Speed(0) };
    ControlHandle::open(directory, Seed([5; 16]), clock, Hypervisor::simulated()).unwrap()
}

fn command(json: &str) -> NamedCommand {
    serde_json::from_str(json).unwrap()
}

async fn order(control: &ControlHandle, json: &str) -> Result<Outcome, ControlError> {
    control.run_commands(vec![command(json)]).await
}

async fn create(control: &ControlHandle, name: &str) -> ControlHandle {
    let create = Administration::CreateCluster(Name::new(name).unwrap());
    control.administer(create, RequestContext::default()).await.unwrap();
    control.named(name).unwrap()
}

async fn admit_machine(control: &ControlHandle, address: &str) {
    order(control, r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    let vm = format!(r#"{{"command":"admit_vm","name":"solo","host":"h1","addresses":["{address}"]}}"#);
    order(control, &vm).await.unwrap();
}

#[tokio::test]
async fn the_same_names_in_two_clusters_are_two_machines() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let west = create(&first, "west").await;
    admit_machine(&first, "10.0.0.1").await;
    admit_machine(&west, "10.0.0.2").await;
    let one = first.caller_at(ClusterId::DEFAULT, "10.0.0.1".parse().unwrap()).unwrap();
    let other = first.caller_at(ClusterId(1), "10.0.0.2".parse().unwrap()).unwrap();
    assert_eq!((one.slot.cluster, other.slot.cluster), (ClusterId(0), ClusterId(1)));
    let vm_id = |caller: &Caller| first.instance(caller).unwrap().vm_id;
    assert_ne!(vm_id(&one), vm_id(&other));
    let named = |name: &str| first.caller_named(name).map(|caller| caller.slot.cluster);
    assert_eq!(named("solo"), Some(ClusterId::DEFAULT), "that of the default cluster");
    assert_eq!(named("west/solo/solo"), Some(ClusterId(1)));

    order(&west, r#"{"command":"restart","machine":"solo"}"#).await.unwrap();
    let boots = async |control: &ControlHandle| {
        control.look(|state| state.cluster.machines().next().unwrap().1.boots).unwrap()
    };
    assert_eq!((boots(&first).await, boots(&west).await), (1, 2));
    first.stop().await;

    let first = open(directory.path());
    let west = first.named("west").unwrap();
    assert_eq!((boots(&first).await, boots(&west).await), (1, 2), "after a restart");
    assert_eq!(west.look(|state| state.name.to_string()).unwrap(), "west");
}

#[tokio::test]
async fn an_address_is_that_of_one_machine_of_each_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let west = create(&first, "west").await;
    admit_machine(&first, "10.0.0.1").await;
    order(&west, r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    let same = r#"{"command":"admit_vm","name":"other","host":"h1","addresses":["10.0.0.1"]}"#;
    order(&west, same).await.unwrap();
    let address = "10.0.0.1".parse().unwrap();
    let machine_at = |cluster| {
        first.caller_at(cluster, address).map(|caller| first.instance(&caller).unwrap().name.to_string())
    };
    assert_eq!(machine_at(ClusterId::DEFAULT).as_deref(), Some("solo"));
    assert_eq!(machine_at(ClusterId(1)).as_deref(), Some("other"));
    let taken = r#"{"command":"admit_vm","name":"third","host":"h1","addresses":["10.0.0.1"]}"#;
    let machine = "other".to_owned();
    assert_eq!(order(&west, taken).await, Err(ControlError::AddressTaken { address, machine }));
}

#[tokio::test]
async fn a_cluster_goes_when_nothing_is_in_it_and_is_called_as_it_is_called_now() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let west = create(&first, "west").await;
    admit_machine(&west, "10.0.0.2").await;
    let administer = async |command| first.administer(command, RequestContext::default()).await;
    let named = |name: &str| Name::new(name).unwrap();
    assert_eq!(
        administer(Administration::RemoveCluster(named("west"))).await,
        Err(ControlError::ClusterInUse("west".to_owned()))
    );
    let rename = Administration::RenameCluster { cluster: named("west"), name: named("east") };
    administer(rename).await.unwrap();
    assert!(first.named("west").is_err());
    assert!(first.caller_named("west/solo/solo").is_none());
    assert!(first.caller_named("east/solo/solo").is_some());

    order(&west, r#"{"command":"delete","machine":"solo"}"#).await.unwrap();
    order(&west, r#"{"command":"remove_host","host":"h1"}"#).await.unwrap();
    administer(Administration::RemoveCluster(named("east"))).await.unwrap();
    assert_eq!(west.look(|_| ()), Err(ControlError::NoSuchCluster));
    assert_eq!(
        administer(Administration::RemoveCluster(named("default"))).await,
        Err(Refusal::DefaultCluster.into())
    );
}

fn once(key: &str, request: u8) -> RequestContext {
    let once = Some(IdempotencyKey { key: key.to_owned(), fingerprint: [request; 32] });
    RequestContext { by: "token alice".to_owned(), once, ..RequestContext::default() }
}

#[tokio::test]
async fn the_same_request_under_the_same_key_is_carried_out_once_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path());
    admit_machine(&control, "10.0.0.1").await;
    let restart = async |control: &ControlHandle, terms| {
        let commands = vec![command(r#"{"command":"restart","machine":"solo"}"#)];
        control.run_commands(CommandBatch { commands, context: terms }).await
    };
    let boots = async |control: &ControlHandle| {
        control.look(|state| state.cluster.machines().next().unwrap().1.boots).unwrap()
    };
    let first = restart(&control, once("k", 1)).await.unwrap();
    assert_eq!(restart(&control, once("k", 1)).await, Ok(first.clone()));
    assert_eq!(boots(&control).await, 2);
    assert_eq!(restart(&control, once("k", 2)).await, Err(Refusal::KeyUsed("k".to_owned()).into()));
    control.stop().await;

    let control = open(directory.path());
    assert_eq!(restart(&control, once("k", 1)).await, Ok(first));
    assert_eq!(boots(&control).await, 2);
    restart(&control, once("another", 1)).await.unwrap();
    assert_eq!(boots(&control).await, 3);
    let by_another = RequestContext { by: "token bob".to_owned(), ..once("k", 1) };
    restart(&control, by_another).await.unwrap();
    assert_eq!(boots(&control).await, 4, "the key of another is another key");
}

#[tokio::test]
async fn a_clock_is_set_forward_once_under_one_key() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path());
    let minute = ClockCommand::Advance(std::time::Duration::from_mins(1));
    let after = control.drive_for(minute, once("k", 1)).await.unwrap();
    assert_eq!(control.drive_for(minute, once("k", 1)).await, Ok(after));
    assert!(control.drive_for(minute, once("l", 1)).await.unwrap().wall > after.wall);
    // Receipts are kept for a day, on the clock that is set forward.
    for (key, days) in [("two-days", 2), ("a-year", 365)] {
        let far = ClockCommand::Advance(std::time::Duration::from_hours(days * 24));
        let after = control.drive_for(far, once(key, 1)).await.unwrap();
        assert_eq!(control.drive_for(far, once(key, 1)).await, Ok(after), "{key}");
    }
}

#[tokio::test]
async fn a_clock_that_is_refused_to_be_set_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path());
    let entries = async || control.read_audit_log(AuditQuery::default()).await.unwrap().entries;
    let before = entries().await;
    let beyond = ClockCommand::Advance(std::time::Duration::MAX);
    for _ in 0..2 {
        assert_eq!(control.drive_for(beyond, once("k", 1)).await, Err(ControlError::EndOfTime));
    }
    control.drive(ClockCommand::Run(Speed(0))).await.unwrap();
    let since = entries().await.split_off(before.len());
    let asked: Vec<_> = since.iter().map(|logged| logged.entry.text.as_str()).collect();
    assert_eq!(asked, ["requested: freeze"]);
}

#[tokio::test]
async fn what_has_changed_since_it_was_read_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let control = open(directory.path());
    let order = async |json, hosts| {
        let check = |state: &State<'_>| {
            if state.cluster.hosts().count() == hosts {
                Ok(state.revision)
            } else {
                Err(ControlError::Changed)
            }
        };
        let request = |revision| {
            let context = RequestContext { if_revision: Some(revision), ..RequestContext::default() };
            let batch = CommandBatch { commands: vec![command(json)], context };
            control.to_cluster(ClusterRequest::Commands(batch))
        };
        control.request_if(check, request).await
    };
    order(r#"{"command":"admit_host","name":"h1"}"#, 0).await.unwrap();
    assert_eq!(order(r#"{"command":"admit_host","name":"h2"}"#, 0).await, Err(ControlError::Changed));
    order(r#"{"command":"admit_host","name":"h2"}"#, 1).await.unwrap();
}

/// A crash may leave a claim that was taken for a request which was not committed.
/// promise: C7
#[tokio::test]
async fn a_claim_that_no_cluster_uses_is_released_at_the_start() {
    let clock = || Clock::virtual_at(Timestamp::from_millis(0), Speed(0));
    let state = ControlState::new(Seed([5; 16]));
    let group = GroupId { subscription: "s".to_owned(), name: "left-over".to_owned() };
    let claim = NewClaim { group: group.clone(), location: "west".to_owned() };
    let mut shared = state.shared().clone();
    let taken = Change::ClaimsTaken { cluster: ClusterId::DEFAULT, claims: vec![claim] };
    shared.apply(Now::at_millis(0), &taken);
    assert!(shared.claim(&group.key()).is_some());
    let used: Vec<_> = state.shared().claims().cloned().collect();

    let state = state.with_shared(Arc::new(shared));
    let control = ControlHandle::simulated_on(state, Seed([5; 16]), clock());
    control.settled().await.unwrap();
    assert_eq!(control.shared().claims().cloned().collect::<Vec<_>>(), used);
}
