//! Control handles of servers in a realm.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::ClusterId;
use forewarn_control::shared::SharedState;
use forewarn_lifecycle::Name;
use forewarn_ownership::ServerName;
use forewarn_peers::{HeartbeatTimes, Heartbeats, ListenerLimits, PeerIdentity, PeerLimits, PeerListener};
use forewarn_realm::{Follower, Realm, ServerRecord};
use forewarn_store::InstanceId;
use tokio::sync::watch;

use super::ControlHandle;
use crate::hypervisor::Hypervisor;
use crate::initial_state::{InitialState, Readers};
use crate::journal::{JournalArchive, JournalHandle};
use crate::realm::{
    ArchiveKeeper, Confirmations, FORMAT, HeartbeatSide, JoinedRealm, LogKeeper, Moves, Owners, PeerClients,
    PeerSide, RealmAdmin, RealmAdminError, RealmHandle, RealmOrders, RealmPlan, RealmTask, RestoreWatch,
    SharedView, StreamNumbers, check_history, join, stay_member, take_name,
};

/// Time without an answer of the engine after which a server is not ready: it renews its key every second.
const ENGINE_SILENCE_MAX: Duration = Duration::from_secs(3);

/// Changes of the owners of clusters: none outside of a realm.
pub(crate) struct OwnershipChanges(Option<watch::Receiver<Arc<Owners>>>);

impl OwnershipChanges {
    /// Waits for the next change.
    pub(crate) async fn changed(&mut self) {
        let has_changed = match &mut self.0 {
            Some(owners) => owners.changed().await.is_ok(),
            None => false,
        };
        if !has_changed {
            // There is no realm, or its task has ended: nothing changes any more.
            std::future::pending::<()>().await;
        }
    }
}

type RealmStartError = Box<dyn std::error::Error + Send + Sync>;

impl ControlHandle {
    /// Joins a realm with the journal of a directory. Returns true if this server has created the realm.
    ///
    /// # Errors
    /// Returns an error if the engine does not answer, or the journal cannot be opened or belongs to another server.
    pub async fn join_realm(
        directory: &Path,
        plan: RealmPlan,
        hypervisor: Hypervisor,
        audit_keep: Duration,
    ) -> Result<(Self, bool), RealmStartError> {
        let joined = join(directory, &plan, audit_keep).await?;
        let JoinedRealm { realm, clock, is_new, identity, positions, restored, instance, history, .. } =
            joined;
        let journal = JournalHandle::in_directory(directory.to_owned(), joined.journal, audit_keep);
        let journal = journal.of_realm(joined.shared);
        let archive = journal.archive();
        let initial = InitialState::recovered(joined.found, Readers::Absent);
        let listener =
            PeerListener::bind(plan.listen, Arc::clone(&identity), ListenerLimits::default()).await?;
        let address =
            plan.advertise.clone().map_or_else(|| listener.address().map(|it| it.to_string()), Ok)?;
        let (own, process) = (ServerName::from(plan.name.clone()), random_number()?);
        let record = server_record(&plan, address, (instance, process));
        let lease = take_name(&realm, &own, &record).await?;
        check_history(&realm, history).await?;
        let (owners, owner) = watch::channel(Arc::default());
        let clients = Arc::new(ArcSwap::default());
        let confirmed = realm.clone();
        let confirmations = Confirmations::start(move || read_numbers(confirmed.clone()));
        let handle = RealmHandle {
            realm: realm.clone(),
            own: plan.name.clone(),
            process,
            owners: owner,
            clients: Arc::clone(&clients),
            confirmations: confirmations.clone(),
            admin: Arc::default(),
        };
        let control = Self::on_own_threads(&initial, journal, clock, hypervisor, Some(handle))?;
        let parts = &control.parts;
        let (context, clusters) = (parts.context.clone(), parts.clusters.clone());
        let view = SharedView::new(&plan.name, plan.engine.clone(), context.clone(), clusters.clone());
        view.lock().restored = restored;
        let (moves, orders) = Moves::new();
        control.start_administration(directory, &realm, &view, orders.clone());
        let peers = (view.clone(), orders, confirmations);
        let heartbeats = control.meet_peers(peers, listener, &identity);
        let runtime = &parts.runtime;
        let stayed = stay_member(realm.clone(), own.clone(), record, lease, context.stop.subscribe());
        runtime.spawn(stayed);
        control.keep_logs((&realm, &view), &clients, (archive, directory), &plan);
        let follower = Follower::new(&realm, positions);
        let (taking, pauses, early, is_current, copies, shown) = Default::default();
        let task = RealmTask {
            realm,
            own,
            view,
            owners,
            clients,
            identity,
            heartbeats,
            clusters,
            moves,
            taking,
            pauses,
            is_current,
            early,
            copies,
            shown,
            context,
        };
        let stopped = parts.context.stop.subscribe();
        runtime.spawn(task.run(follower, stopped));
        Ok((control, is_new))
    }

    /// Answers the messages of other servers, and prepares heartbeats to them.
    fn meet_peers(
        &self,
        (view, orders, confirmations): (SharedView, RealmOrders, Confirmations),
        listener: PeerListener,
        identity: &Arc<PeerIdentity>,
    ) -> Heartbeats {
        let (context, clusters) = (&self.parts.context, self.parts.clusters.clone());
        let broadcasts = context.broadcasts.clone();
        let side = Arc::new(PeerSide { view: view.clone(), clusters, broadcasts, orders, confirmations });
        let mut stop = context.stop.subscribe();
        self.parts.runtime.spawn(async move {
            listener.serve(side, async move { drop(stop.wait_for(|stop| *stop).await) }).await;
        });
        let (times, limits) = (HeartbeatTimes::default(), PeerLimits::default());
        let exchange = Arc::new(HeartbeatSide(view));
        // The other servers show announcements once they know that this one has.
        let prompts = context.broadcasts.announcements.subscribe();
        Heartbeats::new(Arc::clone(identity), (exchange, prompts), times, limits)
    }

    /// Lets operators administer the realm, and watches for an engine that was restored.
    fn start_administration(&self, directory: &Path, realm: &Realm, view: &SharedView, orders: RealmOrders) {
        let Some(handle) = &self.parts.realm else { return };
        let (broadcasts, clusters) = (self.parts.context.broadcasts.clone(), self.parts.clusters.clone());
        handle.admin.get_or_init(|| RealmAdmin {
            realm: realm.clone(),
            own: ServerName::from(handle.own.clone()),
            view: view.clone(),
            orders,
            owners: handle.owners.clone(),
            broadcasts: broadcasts.clone(),
        });
        let (realm, view, directory) = (realm.clone(), view.clone(), directory.to_owned());
        let watch = RestoreWatch { realm, directory, view, broadcasts, clusters };
        self.parts.runtime.spawn(watch.run(self.parts.context.stop.subscribe()));
    }

    /// Starts to complete the archive of this server, and to keep the logs of the realm short.
    fn keep_logs(
        &self,
        (realm, view): (&Realm, &SharedView),
        clients: &PeerClients,
        (archive, directory): (JournalArchive, &Path),
        plan: &RealmPlan,
    ) {
        let context = &self.parts.context;
        let own = ServerName::from(plan.name.clone());
        let archive_keeper = ArchiveKeeper {
            realm: realm.clone(),
            own: own.clone(),
            view: view.clone(),
            broadcasts: context.broadcasts.clone(),
            clients: Arc::clone(clients),
            archive,
            directory: directory.to_owned(),
        };
        let log_keeper = LogKeeper {
            realm: realm.clone(),
            own,
            view: view.clone(),
            context: context.clone(),
            clusters: self.parts.clusters.clone(),
            limits: plan.log_limits,
            compacts: plan.compacts,
        };
        self.parts.runtime.spawn(archive_keeper.run(context.stop.subscribe()));
        self.parts.runtime.spawn(log_keeper.run(context.stop.subscribe()));
    }

    /// Waits until VMs may read the documents of every cluster: their times are final. If that takes too long, VMs read
    /// them all the same.
    pub(crate) async fn announcements_are_settled(&self) {
        let unsettled = &self.parts.context.unsettled;
        let clusters = unsettled.clusters().len();
        if clusters > 0 {
            tracing::info!(clusters, "waiting until owners show their last announcements");
        }
        for cluster in unsettled.settled().await {
            tracing::warn!(
                cluster = cluster.0,
                "its owner has not confirmed the last announcements; showing them"
            );
        }
    }

    /// The clusters that this server decides about: all of them outside of a realm.
    pub(crate) fn owned_clusters(&self, shared: &SharedState) -> BTreeSet<ClusterId> {
        let all = shared.clusters().map(|(id, _)| id);
        match &self.parts.realm {
            None => all.collect(),
            Some(realm) => all.filter(|id| self.cluster_owner(*id).as_ref() == Some(&realm.own)).collect(),
        }
    }

    /// Administration of the realm.
    pub(crate) fn realm_admin(&self) -> Result<&RealmAdmin, RealmAdminError> {
        let realm = self.parts.realm.as_ref();
        realm.and_then(|realm| realm.admin.get()).ok_or(RealmAdminError::NoRealm)
    }

    /// The time since the engine of the realm has answered this server, if that is too long ago: operators get no
    /// answers then. None outside of a realm.
    pub(crate) fn engine_silence(&self) -> Option<Duration> {
        let silence = self.realm_admin().ok()?.realm.engine().silent_for();
        (silence > ENGINE_SILENCE_MAX).then_some(silence)
    }

    /// Gives all clusters to other servers of the realm, as far as that is possible in a few seconds: the server stops.
    /// Nothing waits for the engine afterwards.
    pub(crate) async fn leave_realm(&self) {
        if let Ok(admin) = self.realm_admin() {
            admin.leave().await;
            admin.realm.give_up_commits();
        }
    }

    /// The owner of a cluster in the realm, as this server knows it.
    #[must_use]
    pub fn cluster_owner(&self, cluster: ClusterId) -> Option<Name> {
        self.parts.realm.as_ref()?.owners.borrow().get(&cluster).map(|owner| owner.server.clone())
    }

    /// Changes of the owners of clusters.
    pub(crate) fn ownership(&self) -> OwnershipChanges {
        OwnershipChanges(self.parts.realm.as_ref().map(|realm| realm.owners.clone()))
    }

    /// The number of servers of the realm, with this one.
    pub(crate) fn server_count(&self) -> usize {
        self.parts.realm.as_ref().map_or(1, |realm| realm.clients.load().len() + 1)
    }

    /// The realm. None for a server of its own.
    pub(crate) fn realm(&self) -> Option<&RealmHandle> {
        self.parts.realm.as_ref()
    }

    /// Lets the server take its journal for broken.
    #[cfg(test)]
    pub(crate) fn fail_journal(&self, reason: &str) {
        self.parts.context.broadcasts.set_write_error(Some(reason.to_owned()));
    }

    /// Clusters whose last announcements are not settled.
    #[cfg(test)]
    pub(crate) fn unsettled_clusters(&self) -> Vec<ClusterId> {
        self.parts.context.unsettled.clusters()
    }

    /// Polls that other servers of the realm have answered.
    #[cfg(test)]
    pub(crate) fn peer_polls(&self) -> &Arc<crate::peer_polls::PeerPolls> {
        &self.parts.context.peer_polls
    }

    /// Milliseconds by which the wall clock is ahead of those of the other servers, while no event starts because of that.
    #[must_use]
    pub fn clock_hold(&self) -> Option<i64> {
        self.parts.context.clock_hold.by_millis()
    }

    /// Name of this server in its realm.
    #[must_use]
    pub fn realm_name(&self) -> Option<&Name> {
        self.parts.realm.as_ref().map(|realm| &realm.own)
    }
}

/// The record of a server, for the others.
fn server_record(plan: &RealmPlan, address: String, (instance, process): (InstanceId, u64)) -> ServerRecord {
    let (version, formats, zone) = (env!("CARGO_PKG_VERSION").to_owned(), vec![FORMAT], plan.zone.clone());
    ServerRecord { address, version, formats, zone, instance: Some(instance), process: Some(process) }
}

fn random_number() -> Result<u64, getrandom::Error> {
    let mut number = [0; 8];
    getrandom::fill(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// Numbers of the last batches of all streams. None if the engine does not answer.
async fn read_numbers(realm: Realm) -> Option<StreamNumbers> {
    let heads = realm.heads().await.ok()?.heads;
    Some(heads.into_iter().map(|(stream, known)| (stream, known.head.number)).collect())
}
