//! The task of a cluster. If its driver panics, or violates an invariant, the cluster has failed: its documents stay
//! readable, its requests are rejected with the reason, and other clusters go on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use forewarn_control::{ClusterId, ClusterState};
use forewarn_lifecycle::Steady;
use forewarn_metadata::Directory;
use tokio::sync::{Mutex, mpsc};

use super::{Driver, DriverContext};
use crate::broadcasts::Broadcasts;
use crate::cluster_runtime::ClusterRuntime;
use crate::clusters::ClusterLink;
use crate::initial_state::StreamStart;
use crate::message::ClusterMessage;
use crate::role::Role;

/// Messages that wait for a driver.
const MESSAGES_WAITING_MAX: usize = 1_024;

/// Publishes a cluster, and starts its driver on the current runtime.
pub(crate) fn start_cluster(
    id: ClusterId,
    start: StreamStart<ClusterState>,
    context: DriverContext,
) -> ClusterLink {
    let (broadcasts, directory) = (context.broadcasts.clone(), Arc::clone(&context.directory));
    start_driver(id, (&broadcasts, &directory), |own| Driver::new(id, start, context, own))
}

/// Starts a driver. If it cannot be made, because the publication of the cluster panics, the cluster has failed: its
/// state is readable.
pub(super) fn start_driver(
    id: ClusterId,
    (broadcasts, directory): (&Broadcasts, &Arc<Directory>),
    make: impl FnOnce(mpsc::WeakSender<ClusterMessage>) -> Driver,
) -> ClusterLink {
    let (messages, inbox) = mpsc::channel::<ClusterMessage>(MESSAGES_WAITING_MAX);
    let link = ClusterLink::new(messages);
    let own = link.messages.downgrade();
    let driver = match catch_unwind(AssertUnwindSafe(|| make(own))) {
        Ok(driver) => driver,
        Err(panic) => {
            report_failure(id, &link.failure, panic_text(&*panic));
            let runtime = ClusterRuntime::new(id, Arc::clone(directory), Steady::START);
            let runtime = Arc::new(runtime.view(Role::Owner, 0));
            broadcasts.publish(|snapshot| snapshot.show_runtime(id, &runtime));
            return link;
        }
    };
    let failure = Arc::clone(&link.failure);
    // The inbox stays open until the failure is known.
    let inbox = Arc::new(Mutex::new(inbox));
    let drivers_inbox = Arc::clone(&inbox);
    let driving = tokio::spawn(async move { driver.run(&mut *drivers_inbox.lock().await).await });
    tokio::spawn(async move {
        let Err(reason) = driving.await.unwrap_or_else(|error| Err(end_text(error))) else { return };
        report_failure(id, &failure, reason);
        // Callers whose requests got no reply read the reason now.
        drop(inbox);
    });
    link
}

fn report_failure(id: ClusterId, failure: &OnceLock<String>, reason: String) {
    tracing::error!(cluster = id.0, reason, "cluster failed; its documents are still served");
    // It is set once.
    drop(failure.set(reason));
}

/// The reason why a task has ended.
fn end_text(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic),
        Err(_) => "the driver was cancelled".to_owned(),
    }
}

/// The message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the driver panicked: {}", text.unwrap_or_default())
}
