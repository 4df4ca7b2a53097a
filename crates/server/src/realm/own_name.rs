//! The name of this server in its realm: no other live server has it.

use std::path::Path;
use std::time::Duration;

use forewarn_ownership::ServerName;
use forewarn_realm::{AnnouncementOutcome, LeaseId, Realm, SERVER_LEASE_SECONDS, ServerRecord};
use forewarn_store::{InstanceId, OpenError, RealmMark, RealmStage};
use forewarn_types::Seed;
use tokio::time::{Instant, sleep};

/// Longest wait for the end of the lease of a server that was killed. Etcd ends it a little late.
const WAIT: Duration = Duration::from_secs(SERVER_LEASE_SECONDS as u64 + 3);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Another live server has the name of this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another server has the name {name}: {address}\n  hint: server.name must be unique in the realm; a server that was \
     moved keeps its data directory"
)]
pub(crate) struct NameTaken {
    name: ServerName,
    address: String,
}

/// The number of a data directory: that of its mark, or a new one.
pub(crate) fn instance(directory: &Path) -> Result<InstanceId, Box<dyn std::error::Error + Send + Sync>> {
    if let Some(mark) = RealmMark::read(directory)? {
        return Ok(mark.instance);
    }
    let mut instance = [0; 16];
    getrandom::fill(&mut instance)?;
    Ok(Seed(instance))
}

/// Marks the directory of a server of a realm, unless it has the mark.
pub(crate) fn mark_member(directory: &Path, realm: Seed, instance: InstanceId) -> Result<(), OpenError> {
    let mark = RealmMark { realm, instance, stage: RealmStage::Member };
    if RealmMark::read(directory)? == Some(mark) {
        return Ok(());
    }
    mark.write(directory)
}

/// Waits until no other server has the name: one that was killed has it until its lease ends.
pub(crate) async fn wait_for_name(
    realm: &Realm,
    name: &ServerName,
    instance: InstanceId,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let deadline = Instant::now() + WAIT;
    let mut is_first = true;
    loop {
        let found = realm.server(name).await?;
        let Some(other) = found.filter(|found| found.instance != Some(instance)) else { return Ok(()) };
        let address = other.address;
        if Instant::now() >= deadline {
            return Err(NameTaken { name: name.clone(), address }.into());
        }
        if std::mem::take(&mut is_first) {
            tracing::warn!(%name, address, "another server has the name of this one; waiting for the end of its lease");
        }
        sleep(PAUSE).await;
    }
}

/// Takes the name, with a new lease.
pub(crate) async fn take_name(
    realm: &Realm,
    name: &ServerName,
    record: &ServerRecord,
) -> Result<LeaseId, Box<dyn std::error::Error + Send + Sync>> {
    let lease = realm.grant_lease().await?;
    match realm.announce_server(name, record, lease).await? {
        AnnouncementOutcome::Announced(_) => Ok(lease),
        AnnouncementOutcome::Taken(other) => {
            // The lease ends by itself.
            drop(realm.revoke_lease(lease).await);
            Err(NameTaken { name: name.clone(), address: other.address }.into())
        }
    }
}

/// Keeps the name: renews the lease, or takes the name again with another one.
pub(crate) async fn keep_name(
    realm: &Realm,
    name: &ServerName,
    record: &ServerRecord,
    lease: Option<LeaseId>,
) -> Result<LeaseId, Box<dyn std::error::Error + Send + Sync>> {
    match lease {
        Some(lease) if realm.keep_lease_alive(lease).await.is_ok() => Ok(lease),
        Some(_) | None => take_name(realm, name, record).await,
    }
}
