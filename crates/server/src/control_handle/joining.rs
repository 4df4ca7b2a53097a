//! Control handles of servers in a realm.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::ClusterId;
use forewarn_control::shared::SharedState;
use forewarn_lifecycle::{Name, Steady};
use forewarn_ownership::ServerName;
use forewarn_peers::{HeartbeatTimes, Heartbeats, ListenerLimits, PeerLimits, PeerListener};
use forewarn_realm::{Follower, Realm, ServerRecord};
use tokio::sync::watch;

use super::ControlHandle;
use crate::clock::{Clock, wall};
use crate::hypervisor::Hypervisor;
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;
use crate::realm::{
    ArchiveKeeper, Confirmations, FORMAT, HeartbeatSide, JoinedRealm, LogKeeper, PeerSide, RealmHandle,
    RealmPlan, RealmTask, SharedView, StreamNumbers, join, stay_member,
};

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
        // Steady clocks of servers are comparable at least: the shared stream has records of all of them.
        let steady = u64::try_from(wall().millis()).unwrap_or(0);
        let clock = Clock::real(Steady::from_millis(steady));
        let joined = join(directory, &plan, (&clock, audit_keep)).await?;
        let JoinedRealm { realm, is_new, identity, shared, journal, found, positions, .. } = joined;
        let journal = JournalHandle::in_directory(directory.to_owned(), journal, audit_keep).of_realm(shared);
        let archive = journal.archive();
        let initial = InitialState::recovered(found, Readers::Absent);
        let listener =
            PeerListener::bind(plan.listen, Arc::clone(&identity), ListenerLimits::default()).await?;
        let address =
            plan.advertise.clone().map_or_else(|| listener.address().map(|it| it.to_string()), Ok)?;
        let (owners, owner) = watch::channel(Arc::default());
        let clients = Arc::new(ArcSwap::default());
        let confirmed = realm.clone();
        let handle = RealmHandle {
            realm: realm.clone(),
            own: plan.name.clone(),
            owners: owner,
            clients: Arc::clone(&clients),
            confirmations: Confirmations::start(move || read_numbers(confirmed.clone())),
        };
        let control = Self::on_own_threads(&initial, journal, clock, hypervisor, Some(handle))?;
        let parts = &control.parts;
        let (context, clusters) = (parts.context.clone(), parts.clusters.clone());
        let view =
            SharedView::new(&plan.name, plan.engine.clone(), context.broadcasts.clone(), clusters.clone());
        let own = ServerName::from(plan.name.clone());
        let record = ServerRecord {
            address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            formats: vec![FORMAT],
            zone: plan.zone.clone(),
        };
        let side = Arc::new(PeerSide {
            view: view.clone(),
            clusters: clusters.clone(),
            broadcasts: context.broadcasts.clone(),
        });
        let stop = || context.stop.subscribe();
        let runtime = &parts.runtime;
        let mut listening = stop();
        runtime.spawn(async move {
            listener.serve(side, async move { drop(listening.wait_for(|stop| *stop).await) }).await;
        });
        runtime.spawn(stay_member(realm.clone(), own.clone(), record, stop()));
        let (times, limits) = (HeartbeatTimes::default(), PeerLimits::default());
        let exchange = Arc::new(HeartbeatSide(view.clone()));
        let heartbeats = Heartbeats::new(Arc::clone(&identity), exchange, times, limits);
        let archive_keeper = ArchiveKeeper {
            realm: realm.clone(),
            own: own.clone(),
            view: view.clone(),
            broadcasts: context.broadcasts.clone(),
            clients: Arc::clone(&clients),
            archive,
        };
        let log_keeper = LogKeeper {
            realm: realm.clone(),
            own: own.clone(),
            view: view.clone(),
            context: context.clone(),
            clusters: clusters.clone(),
            limits: plan.log_limits,
            compacts: plan.compacts,
        };
        let follower = Follower::new(&realm, positions);
        let (taking, early, is_current, heads, lags) = Default::default();
        let context = context.clone();
        let task = RealmTask {
            realm,
            own,
            view,
            owners,
            clients,
            identity,
            heartbeats,
            clusters,
            taking,
            is_current,
            early,
            heads,
            lags,
            context,
        };
        runtime.spawn(archive_keeper.run(stop()));
        runtime.spawn(log_keeper.run(stop()));
        let stopped = parts.context.stop.subscribe();
        runtime.spawn(task.run(follower, stopped));
        Ok((control, is_new))
    }

    /// The clusters that this server decides about: all of them outside of a realm.
    pub(crate) fn owned_clusters(&self, shared: &SharedState) -> BTreeSet<ClusterId> {
        let all = shared.clusters().map(|(id, _)| id);
        match &self.parts.realm {
            None => all.collect(),
            Some(realm) => all.filter(|id| self.cluster_owner(*id).as_ref() == Some(&realm.own)).collect(),
        }
    }

    /// The owner of a cluster in the realm, as this server knows it.
    #[must_use]
    pub fn cluster_owner(&self, cluster: ClusterId) -> Option<Name> {
        self.parts.realm.as_ref()?.owners.borrow().get(&cluster).map(|owner| owner.server.clone())
    }

    /// The realm. None for a server of its own.
    pub(crate) fn realm(&self) -> Option<&RealmHandle> {
        self.parts.realm.as_ref()
    }

    /// Name of this server in its realm.
    #[must_use]
    pub fn realm_name(&self) -> Option<&Name> {
        self.parts.realm.as_ref().map(|realm| &realm.own)
    }
}

/// Numbers of the last batches of all streams. None if the engine does not answer.
async fn read_numbers(realm: Realm) -> Option<StreamNumbers> {
    let heads = realm.heads().await.ok()?.heads;
    Some(heads.into_iter().map(|(stream, known)| (stream, known.head.number)).collect())
}
