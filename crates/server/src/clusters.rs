//! The running clusters: how to reach the driver of each, and those that have failed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

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
    posted: PostedMessages,
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

    /// Returns true if the driver of a cluster has failed.
    pub(crate) fn has_failed(&self, id: ClusterId) -> bool {
        self.0.load().get(&id).is_some_and(|link| link.failure.get().is_some())
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
        let posted = PostedMessages::default();
        Self { messages, posted, failure: Arc::default(), planning: Arc::default() }
    }

    /// Sends a message without waiting for room in the inbox: a cluster that is busy delays no other. Messages keep their
    /// order. If the driver has ended, the reply is dropped with the message.
    pub(crate) fn post(&self, message: ClusterMessage) {
        let mut waiting = self.posted.lock();
        if !waiting.is_empty() {
            waiting.retain(|earlier| !message.replaces(earlier));
            waiting.push_back(message);
        } else if let Err(TrySendError::Full(message)) = self.messages.try_send(message) {
            waiting.push_back(message);
            tokio::spawn(self.posted.clone().send_to(self.messages.clone()));
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

/// Messages that wait for room in the inbox of a driver, in their order. While there are any, a task sends them.
#[derive(Clone, Default)]
struct PostedMessages(Arc<std::sync::Mutex<VecDeque<ClusterMessage>>>);

impl std::fmt::Debug for PostedMessages {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PostedMessages").finish_non_exhaustive()
    }
}

impl PostedMessages {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ClusterMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_to(self, inbox: mpsc::Sender<ClusterMessage>) {
        loop {
            let room = inbox.reserve().await;
            let mut waiting = self.lock();
            let Ok(room) = room else { return waiting.clear() };
            if let Some(message) = waiting.pop_front() {
                room.send(message);
            }
            if waiting.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn posted_messages_keep_their_order_and_the_last_one_of_its_kind_is_enough() {
        let (messages, mut inbox) = mpsc::channel(1);
        let link = ClusterLink::new(messages);
        for number in 0..1_000 {
            link.post(ClusterMessage::PublishedByOwner(number));
            link.post(ClusterMessage::ShownByOthers(number));
            link.post(ClusterMessage::Disown);
        }
        let (reply, _) = oneshot::channel();
        link.post(ClusterMessage::Settle { reply });
        link.post(ClusterMessage::PublishedByOwner(1_000));
        assert_eq!(link.posted.lock().len(), 4);
        let mut received = Vec::new();
        while received.len() < 5 {
            let message = inbox.recv().await.unwrap();
            received.push(if let ClusterMessage::PublishedByOwner(number) = message {
                format!("published {number}")
            } else if let ClusterMessage::ShownByOthers(number) = message {
                format!("shown {number}")
            } else if matches!(message, ClusterMessage::Disown) {
                "disown".to_owned()
            } else {
                assert!(matches!(message, ClusterMessage::Settle { .. }));
                "settle".to_owned()
            });
        }
        assert_eq!(received, ["published 0", "shown 999", "disown", "settle", "published 1000"]);
        link.post(ClusterMessage::Disown);
        assert!(link.posted.lock().is_empty(), "there is room again");
        drop(inbox);
        link.post(ClusterMessage::Disown);
    }
}
