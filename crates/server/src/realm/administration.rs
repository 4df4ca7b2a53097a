//! Administration of a realm by operators: its servers, the owners of clusters, the format of records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::{
    ClusterId, ClusterOwnerView, EngineMemberView, RealmServerView, RealmView, ServerStateWord, Stream,
    StreamView, similar,
};
use forewarn_lifecycle::Timestamp;
use forewarn_ownership::{SILENCE_MILLIS, ServerName};
use forewarn_peers::ServerDuty;
use forewarn_realm::{EngineMember, Realm, RealmError, RealmRecord};
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};

use super::owners::Owners;
use super::pending_moves::{RealmOrder, RealmOrders};
use super::view::{RealmView as KnownRealm, SharedView, uptime};
use crate::broadcasts::Broadcasts;

/// Longest wait for a move: the former owner may have to be replaced.
const MOVE_WAIT: Duration = Duration::from_secs(10);

/// Longest wait until this server has given its clusters away before it stops.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// Time limit of the question to one member of the engine.
const MEMBER_WAIT: Duration = Duration::from_secs(1);

/// Bytes of the fingerprint of a realm.
const FINGERPRINT_BYTES: usize = 8;

/// Administration of the realm that this server belongs to.
pub(crate) struct RealmAdmin {
    pub(crate) realm: Realm,
    pub(crate) own: ServerName,
    pub(crate) view: SharedView,
    pub(crate) orders: RealmOrders,
    pub(crate) owners: watch::Receiver<std::sync::Arc<Owners>>,
    pub(crate) broadcasts: Broadcasts,
}

/// Reason why an order of an operator was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RealmAdminError {
    /// Outside of a realm.
    #[error(
        "this server belongs to no realm\n  \
         hint: several servers share a realm by `[engine]` and `[server]` in their settings"
    )]
    NoRealm,
    #[error("no such server: {name}{hint}")]
    NoSuchServer { name: String, hint: String },
    #[error("{0}")]
    Refused(String),
    /// The engine does not answer.
    #[error("the engine of the realm does not answer: {0}\n  hint: `forewarn realm show` lists its members")]
    Unavailable(String),
}

impl From<RealmError> for RealmAdminError {
    fn from(error: RealmError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl RealmAdmin {
    /// All servers: members, and former ones whose archive is known.
    pub(crate) async fn servers(&self) -> Result<Vec<RealmServerView>, RealmAdminError> {
        let archives = self.realm.archives().await?;
        let view = self.view.lock();
        let names: BTreeSet<_> =
            view.servers.keys().chain(archives.keys()).chain([&self.own]).cloned().collect();
        Ok(names.into_iter().map(|name| self.server_view(&view, &name)).collect())
    }

    /// One server.
    pub(crate) async fn server(&self, name: &str) -> Result<RealmServerView, RealmAdminError> {
        let servers = self.servers().await?;
        let near = similar(name, servers.iter().map(|server| server.name.as_str())).map(str::to_owned);
        servers.into_iter().find(|server| server.name == name).ok_or_else(|| no_such_server(name, near))
    }

    fn server_view(&self, view: &KnownRealm, name: &ServerName) -> RealmServerView {
        let (now, own) = (uptime(), *name == self.own);
        let record = view.servers.get(name);
        let heard = view.heard.get(name).filter(|_| record.is_some());
        let age = heard.map(|heard| now.since(heard.at));
        let own_heartbeat = own.then(|| view.peers.own_answer(now, Timestamp::from_millis(0)));
        let drains = view.peers.drains(name)
            || heard.is_some_and(|heard| heard.heartbeat.duty == ServerDuty::Draining)
            || own && view.is_draining();
        let state = match (record, drains) {
            (None, _) if !own => ServerStateWord::Gone,
            _ if !own && age.is_none_or(|age| age >= SILENCE_MILLIS) => ServerStateWord::Silent,
            (_, true) => ServerStateWord::Draining,
            (_, false) => ServerStateWord::Active,
        };
        RealmServerView {
            name: name.to_string(),
            state,
            address: record.map(|record| record.address.clone()),
            version: record.map(|record| record.version.clone()),
            formats: record.map(|record| record.formats.clone()).unwrap_or_default(),
            zone: record.and_then(|record| record.zone.clone()),
            clusters: self.clusters_of(view, name),
            answering: own,
            heartbeat_millis: age,
            engine_millis: match own_heartbeat {
                Some(own) => Some(own.engine_silent_millis),
                None => heard.and_then(|heard| heard.heartbeat.engine_age_millis),
            },
            clock_ahead_millis: if own { Some(0) } else { heard.map(|heard| heard.clock_ahead_millis) },
        }
    }

    /// Names of the clusters that a server owns.
    fn clusters_of(&self, view: &KnownRealm, name: &ServerName) -> Vec<String> {
        let shared = self.broadcasts.shared();
        let owned = view
            .standings
            .values()
            .filter(|standing| standing.owner.as_ref().is_some_and(|owner| owner.server == *name));
        owned.filter_map(|standing| shared.cluster_name(standing.cluster).map(ToString::to_string)).collect()
    }

    /// The owner of a cluster.
    pub(crate) fn owner(&self, cluster: ClusterId) -> ClusterOwnerView {
        let view = self.view.lock();
        let standing = view.standings.get(&cluster);
        let owner = standing.and_then(|standing| standing.owner.as_ref());
        ClusterOwnerView {
            server: owner.map(|owner| owner.server.to_string()),
            term: owner.map_or(0, |owner| owner.term.0),
            preferred: standing.and_then(|standing| standing.preferred.as_ref()).map(ToString::to_string),
        }
    }

    /// Lets a server give its clusters away and take none, or ends that.
    pub(crate) async fn set_draining(
        &self,
        name: &str,
        is_on: bool,
    ) -> Result<RealmServerView, RealmAdminError> {
        let server = self.member(name).await?;
        self.realm.set_draining(&server, is_on).await?;
        // The answer shows the new state at once.
        self.view.lock().set_draining(server, is_on);
        self.server(name).await
    }

    /// A server that is a member.
    async fn member(&self, name: &str) -> Result<ServerName, RealmAdminError> {
        let found = self.server(name).await?;
        match found.state {
            ServerStateWord::Active | ServerStateWord::Draining | ServerStateWord::Silent => {
                ServerName::new(name).map_err(|_| no_such_server(name, None))
            }
            ServerStateWord::Gone => Err(RealmAdminError::Refused(format!(
                "server {name} is gone\n  hint: start it, or forget it: forewarn server delete {name}"
            ))),
        }
    }

    /// Forgets a server that is gone, with its archive.
    pub(crate) async fn forget_server(&self, name: &str) -> Result<RealmServerView, RealmAdminError> {
        let server = self.server(name).await?;
        if server.state != ServerStateWord::Gone {
            return Err(RealmAdminError::Refused(format!(
                "server {name} is a member of the realm\n  hint: stop it first; its key goes after 5 s"
            )));
        }
        let gone = ServerName::new(name).map_err(|_| no_such_server(name, None))?;
        self.realm.forget_archive(&gone).await?;
        self.realm.set_draining(&gone, false).await?;
        let preferring: Vec<_> = {
            let mut view = self.view.lock();
            view.peers.forget(&gone);
            view.heard.remove(&gone);
            let standings = view.standings.values();
            standings.filter(|one| one.preferred.as_ref() == Some(&gone)).map(|one| one.cluster).collect()
        };
        for cluster in preferring {
            self.realm.set_preferred(Stream::Cluster(cluster), None).await?;
        }
        Ok(server)
    }

    /// Moves a cluster to a server, which is preferred from now on, and waits until that server owns it.
    pub(crate) async fn move_cluster(
        &self,
        cluster: ClusterId,
        to: &str,
    ) -> Result<ClusterOwnerView, RealmAdminError> {
        let server = self.member(to).await?;
        if !self.view.lock().peers.live(uptime()).contains(&server) {
            return Err(RealmAdminError::Refused(format!(
                "server {to} cannot own clusters now: it drains, is silent, or does not reach the engine\n  \
                 hint: forewarn server show {to}"
            )));
        }
        self.realm.set_preferred(Stream::Cluster(cluster), Some(&server)).await?;
        let mut owners = self.owners.clone();
        let moved = owners.wait_for(|owners| {
            owners.get(&cluster).is_some_and(|owner| owner.server.as_str() == server.as_str())
        });
        match tokio::time::timeout(MOVE_WAIT, moved).await {
            Ok(Ok(_)) => Ok(ClusterOwnerView { preferred: Some(to.to_owned()), ..self.owner(cluster) }),
            Ok(Err(_)) | Err(_) => Err(RealmAdminError::Refused(format!(
                "cluster was not moved to {to} within 10 s; {to} is preferred from now on\n  \
                 hint: forewarn cluster show NAME"
            ))),
        }
    }

    /// The realm, its servers, its engine and its streams.
    pub(crate) async fn describe(&self) -> Result<RealmView, RealmAdminError> {
        let record = self.record().await?;
        let (heads, servers) = (self.realm.heads().await?, self.servers().await?);
        let engine = self.realm.engine().members(MEMBER_WAIT).await;
        let streams = heads.heads.iter().map(|(stream, known)| {
            let owner = heads.owners.get(stream).map(|owner| owner.server.to_string());
            (stream.to_string(), StreamView { number: known.head.number, term: known.head.term.0, owner })
        });
        let streams: BTreeMap<_, _> = streams.collect();
        let identity = Sha256::digest(record.identity.0);
        Ok(RealmView {
            identity: data_encoding::HEXLOWER.encode(&identity[..FINGERPRINT_BYTES]),
            created: record.created,
            format: record.format,
            restores: record.restores,
            restored: self.restored(),
            servers,
            engine: engine.into_iter().map(member_view).collect(),
            streams,
        })
    }

    async fn record(&self) -> Result<RealmRecord, RealmAdminError> {
        let missing = || RealmAdminError::Unavailable("it has no record of the realm".to_owned());
        self.realm.record().await?.ok_or_else(missing)
    }

    /// The reason why no server owns clusters, if the engine was restored.
    pub(crate) fn restored(&self) -> Option<String> {
        self.view.lock().restored.map(|evidence| evidence.to_string())
    }

    /// Sets the format in which records are written: one that all servers read.
    pub(crate) async fn set_format(&self, format: u32) -> Result<RealmView, RealmAdminError> {
        let known = self.record().await?;
        for server in self.servers().await? {
            if server.state == ServerStateWord::Gone {
                return Err(RealmAdminError::Refused(format!(
                    "server {0} is gone, and may not read format {format}\n  \
                     hint: start it, or forget it: forewarn server delete {0}",
                    server.name
                )));
            }
            if !server.formats.contains(&format) {
                return Err(RealmAdminError::Refused(format!(
                    "server {} does not read format {format}: it reads {}\n  hint: upgrade all servers first",
                    server.name,
                    server.formats.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
                )));
            }
        }
        let new = RealmRecord { format, ..known };
        if new != known && !self.realm.change_record(&known, &new).await? {
            let text = "the realm was changed at the same time\n  hint: repeat the command";
            return Err(RealmAdminError::Refused(text.to_owned()));
        }
        self.describe().await
    }

    /// Gives all clusters away: this server stops. Returns after a while in any case.
    pub(crate) async fn leave(&self) {
        let (reply, left) = oneshot::channel();
        if self.orders.send(RealmOrder::Leave { reply }).await.is_ok()
            && tokio::time::timeout(LEAVE_WAIT, left).await.is_err()
        {
            tracing::warn!("cannot give all clusters away in time; other servers take them over");
        }
    }
}

fn no_such_server(name: &str, near: Option<String>) -> RealmAdminError {
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`forewarn server ls` lists servers".to_owned(),
    };
    RealmAdminError::NoSuchServer { name: name.to_owned(), hint: format!("\n  hint: {hint}") }
}

fn member_view(member: EngineMember) -> EngineMemberView {
    let EngineMember { endpoint, status, problem } = member;
    EngineMemberView {
        endpoint,
        version: status.as_ref().map(|status| status.version.clone()),
        bytes: status.as_ref().map(|status| status.bytes),
        bytes_max: status.and_then(|status| status.bytes_max),
        problem,
    }
}
