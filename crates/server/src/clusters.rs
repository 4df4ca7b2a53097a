//! The running clusters: how to reach the driver of each, and those that have failed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use forewarn_control::request::{ClusterRequest, Reply};
use forewarn_control::{ClusterId, ControlError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::message::ClusterMessage;

/// The clusters of a server, each with a link to its driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterRegistry(Arc<ArcSwap<BTreeMap<ClusterId, ClusterLink>>>);

/// A link to the driver of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterLink {
    pub(crate) messages: mpsc::Sender<ClusterMessage>,
    /// The reason why the driver has failed.
    pub(crate) failure: Arc<OnceLock<String>>,
    /// Held while a request is planned and decided, so that planned requests do not outdate each other.
    pub(crate) planning: Arc<Mutex<()>>,
}

impl ClusterRegistry {
    pub(crate) fn get(&self, id: ClusterId) -> Option<ClusterLink> {
        self.0.load().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<ClusterId, ClusterLink>> {
        self.0.load_full()
    }

    /// Only the driver of the shared stream adds and removes clusters.
    pub(crate) fn add(&self, id: ClusterId, link: &ClusterLink) {
        self.change(|all| drop(all.insert(id, link.clone())));
    }

    /// The driver of the cluster ends when it has handled its messages.
    pub(crate) fn remove(&self, id: ClusterId) {
        self.change(|all| drop(all.remove(&id)));
    }

    /// Replaces all clusters at once.
    pub(crate) fn replace(&self, all: BTreeMap<ClusterId, ClusterLink>) {
        self.0.store(Arc::new(all));
    }

    fn change(&self, change: impl Fn(&mut BTreeMap<ClusterId, ClusterLink>)) {
        self.0.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            change(&mut all);
            all
        });
    }

    /// Clusters whose driver has failed, with the reasons.
    pub(crate) fn failures(&self) -> Vec<(ClusterId, String)> {
        let all = self.all();
        let failed = all.iter().filter_map(|(id, link)| Some((*id, link.failure.get()?.clone())));
        failed.collect()
    }

    /// Sends a message to some clusters, and waits for all replies. A cluster that has failed or stopped sends none.
    pub(crate) async fn ask<T>(
        &self,
        ids: impl IntoIterator<Item = ClusterId>,
        message: impl Fn(oneshot::Sender<T>) -> ClusterMessage,
    ) -> Vec<T> {
        let mut results = Vec::new();
        for link in ids.into_iter().filter_map(|id| self.get(id)) {
            let (reply, result) = oneshot::channel();
            link.post(message(reply));
            results.push(result);
        }
        let mut replies = Vec::with_capacity(results.len());
        for result in results {
            replies.extend(result.await.ok());
        }
        replies
    }

    /// The same for every cluster.
    pub(crate) async fn ask_all<T>(&self, message: impl Fn(oneshot::Sender<T>) -> ClusterMessage) -> Vec<T> {
        let ids: Vec<_> = self.all().keys().copied().collect();
        self.ask(ids, message).await
    }
}

impl ClusterLink {
    pub(crate) fn new(messages: mpsc::Sender<ClusterMessage>) -> Self {
        Self { messages, failure: Arc::default(), planning: Arc::default() }
    }

    /// Sends a message without waiting for room in the inbox: a cluster that is busy delays no other.
    pub(crate) fn post(&self, message: ClusterMessage) {
        if let Err(TrySendError::Full(message)) = self.messages.try_send(message) {
            let messages = self.messages.clone();
            // If the driver has ended, the reply is dropped with the message.
            tokio::spawn(async move { messages.send(message).await.ok() });
        }
    }

    /// Sends a message, and waits for the reply.
    pub(crate) async fn call<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> ClusterMessage,
    ) -> Result<T, ControlError> {
        let (reply, result) = oneshot::channel();
        self.messages.send(message(reply)).await.map_err(|_| self.unavailable())?;
        result.await.map_err(|_| self.unavailable())
    }

    /// Sends a request, and waits for the reply.
    pub(crate) async fn request(&self, request: ClusterRequest) -> Result<Reply, ControlError> {
        let request = Box::new(request);
        match self.call(|reply| ClusterMessage::Request { request, reply }).await {
            Err(ControlError::Unavailable) => {
                // The driver has ended without a reply. If it has failed, the reason is known before its inbox closes.
                self.messages.closed().await;
                Err(self.unavailable())
            }
            result => result?,
        }
    }

    fn unavailable(&self) -> ControlError {
        match self.failure.get() {
            Some(reason) => ControlError::ClusterFailed(reason.clone()),
            None => ControlError::Unavailable,
        }
    }
}
