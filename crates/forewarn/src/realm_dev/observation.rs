//! The owners of clusters and the leader of etcd, read from etcd all the time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use forewarn_control::{ClusterId, Stream};
use forewarn_etcd::{EtcdClient, EtcdSettings, Url};
use forewarn_realm::{CallTimes, Realm};
use forewarn_server::{Engine, EtcdEngine, Keyspace};
use tokio::sync::mpsc;

use super::RealmEvent;
use super::board::OwnerView;

/// The default prefix of keys in etcd.
const PREFIX: &str = "/forewarn/1/";

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(100);

/// Time limit of a question to one member.
const STATUS_MAX: Duration = Duration::from_millis(300);

/// Reads of etcd.
#[derive(Clone)]
pub(super) struct EtcdReader {
    realm: Realm,
    client: EtcdClient,
}

impl EtcdReader {
    pub(super) fn new(endpoints: &[String]) -> Result<Self> {
        let urls = endpoints.iter().map(|url| Url::parse(url)).collect::<Result<Vec<_>, _>>()?;
        let client = EtcdClient::new(EtcdSettings::new(urls))?;
        let keys = Keyspace::new(PREFIX).ok().context("invalid prefix")?;
        let realm = Realm::new(Engine::Etcd(EtcdEngine::new(client.clone())), keys, CallTimes::default());
        Ok(Self { realm, client })
    }

    /// The number of the member that leads. None if no member that answers is the leader.
    pub(super) async fn leader(&self) -> Option<usize> {
        let client = self.client.within(STATUS_MAX);
        for number in 0..self.client.endpoints().len() {
            if let Ok(status) = client.status(number).await
                && status.leader == Some(status.header.member_id)
            {
                return Some(number);
            }
        }
        None
    }

    async fn owners(&self) -> Option<BTreeMap<ClusterId, OwnerView>> {
        let owners = self.realm.heads().await.ok()?.owners;
        let owner = |(stream, owner): (Stream, forewarn_realm::OwnerRecord)| match stream {
            Stream::Shared => None,
            Stream::Cluster(id) => {
                Some((id, OwnerView { server: owner.server.as_str().to_owned(), term: owner.term.0 }))
            }
        };
        Some(owners.into_iter().filter_map(owner).collect())
    }

    /// Sends everything that changes, until the receiver is gone.
    pub(super) async fn report(self, events: mpsc::Sender<RealmEvent>) {
        let (mut owners, mut leader) = (None, None);
        loop {
            let read = (self.owners().await, self.leader().await);
            if let (Some(found), _) = &read
                && owners.as_ref() != Some(found)
            {
                owners = Some(found.clone());
                if events.send(RealmEvent::Owners(found.clone())).await.is_err() {
                    return;
                }
            }
            if leader != Some(read.1) {
                leader = Some(read.1);
                if events.send(RealmEvent::Leader(read.1)).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
