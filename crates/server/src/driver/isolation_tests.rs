//! A cluster that has failed: its documents stay, its requests are rejected with the reason, others go on.

use forewarn_control::request::{Administration, ClusterRequest, RequestContext};
use forewarn_control::{ClusterId, ControlError, ControlState};
use forewarn_lifecycle::{Command, Name, Now, Seed, Size, TenantId, Timestamp};
use forewarn_metadata::ControlPlane;

use super::task::start_driver;
use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, Speed};
use crate::control_handle::ControlHandle;
use crate::message::{ClockCommand, ClusterMessage};
use crate::snapshot::Snapshot;

const NORTH: ClusterId = ClusterId(1);

fn host(name: &str) -> Command {
    Command::AdmitHost { name: Name::new(name).unwrap(), zone: None, capacity: Size::NONE }
}

/// A server with two clusters. The driver of the second one has panicked.
async fn with_failed_cluster() -> ControlHandle {
    let control = with_clusters().await;
    control.send_to_cluster(NORTH, ClusterMessage::Panic).await;
    control
}

/// A server with two clusters; the second one has an event.
async fn with_clusters() -> ControlHandle {
    let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
    let control = ControlHandle::simulated(Seed([5; 16]), clock);
    let create = Administration::CreateCluster(Name::new("north").unwrap());
    control.administer(create, RequestContext::default()).await.unwrap();
    for command in super::tests::solo_restart() {
        control.of(NORTH).submit(command).await.unwrap();
    }
    control
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_driver_panics_keeps_its_documents_and_leaves_others_alone() {
    let control = with_failed_cluster().await;
    let north = control.of(NORTH);
    let Err(ControlError::ClusterFailed(reason)) = north.submit(host("h9")).await else {
        panic!("the cluster still decides")
    };
    assert!(reason.contains("a test has made the driver panic"), "{reason}");
    assert_eq!(control.failed_clusters(), [(NORTH, reason)]);
    let read = north.look(|state| (state.cluster.hosts().count(), state.cluster.maintenances().count()));
    assert_eq!(read, Ok((1, 1)), "its state is readable");
    let caller = control.caller_named("north/solo/solo").expect("its machine is known");
    assert_eq!((caller.slot.tenant, caller.slot.read().document.events.len()), (TenantId(0), 1));
    control.submit(host("h1")).await.unwrap();
    assert_eq!(control.look(|state| state.cluster.hosts().count()), Ok(1), "another cluster goes on");
    control.settled().await.unwrap();
    control.stop().await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_passes_what_a_cluster_that_failed_does_not_do() {
    let control = with_failed_cluster().await;
    assert!(control.of(NORTH).submit(host("h9")).await.is_err());
    for command in super::tests::solo_restart() {
        control.submit(command).await.unwrap();
    }
    let before = control.clock().now();
    let hour = std::time::Duration::from_hours(1);
    let now = control.drive(ClockCommand::Advance(hour)).await.unwrap();
    assert_eq!(now.wall.since(before.wall), hour);
    let waiting = |control: &ControlHandle| control.look(|state| state.cluster.maintenances().count());
    assert_eq!((waiting(&control), waiting(&control.of(NORTH))), (Ok(0), Ok(1)));
    control.stop().await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entries_of_a_cluster_that_failed_are_readable() {
    let control = with_failed_cluster().await;
    assert!(control.of(NORTH).submit(host("h9")).await.is_err());
    let page = control.read_audit_log(forewarn_store::AuditQuery::default()).await.unwrap();
    let north = page.entries.iter().filter(|logged| logged.entry.cluster_number == NORTH.0).count();
    assert!(north > 0 && page.entries.len() as u64 == page.head);
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_commit_is_rejected_fails_alone() {
    let control = with_clusters().await;
    let north = control.of(NORTH);
    control.send_to_cluster(NORTH, ClusterMessage::BreakChain).await;
    assert!(north.submit(host("h8")).await.is_err());
    let Err(ControlError::ClusterFailed(reason)) = north.submit(host("h9")).await else {
        panic!("the cluster still decides")
    };
    assert!(reason.contains("the audit chain would be broken"), "{reason}");
    control.submit(host("h1")).await.unwrap();
    assert_eq!(control.write_error(), None, "the journal works");
    control.stop().await;
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_be_published_does_not_keep_others_from_starting() {
    let seed = Seed([5; 16]);
    let broadcasts = Broadcasts::new(Snapshot::new(ControlState::new(seed), seed));
    let link = start_driver(ClusterId::DEFAULT, (&broadcasts, &std::sync::Arc::default()), |_| {
        panic!("no document")
    });
    assert_eq!(link.failure.get().map(String::as_str), Some("the driver panicked: no document"));
    assert!(matches!(link.request(ClusterRequest::Sweep).await, Err(ControlError::ClusterFailed(_))));
    let snapshot = broadcasts.snapshot.load();
    assert!(snapshot.cluster(ClusterId::DEFAULT, Now::at_millis(0)).is_some(), "its state is readable");
}
