//! Watches: the changes of keys from a revision on.
//!
//! Etcd splits large answers, so that no answer exceeds the limit of a reader. The pieces are put together again:
//! all events of a revision are in one item.

mod assembly;

use bytes::Bytes;
use hyper::http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::metadata::{Ascii, MetadataValue};

use crate::call::CallProgress;
use crate::classify::{error_of, error_of_cancellation};
use crate::client::{ChosenEndpoint, EtcdClient, Header};
use crate::codec::MessageCodec;
use crate::connection::ConnectionUse;
use crate::error::{Doubt, EtcdError};
use crate::keys::{KeyRange, KeyValue};
use crate::messages::{
    WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestUnion, WatchResponse,
};
use crate::method::WATCH;

use assembly::{EventAssembly, Piece};

/// Requests that wait to be sent: the creation, and a few progress requests.
const REQUESTS_MAX: usize = 4;

/// Id in the answer to a progress request.
const NO_WATCH: i64 = -1;

/// A watch to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchQuery {
    keys: KeyRange,
    /// 0 for now.
    start: i64,
}

/// A watch. It ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    client: EtcdClient,
    chosen: ChosenEndpoint,
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
    created: Header,
    assembly: EventAssembly,
    end: Option<WatchEnd>,
    /// Keeps the connection examined.
    _connection: ConnectionUse,
}

/// Something that a watch has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// Events of one or more revisions, in order; all events of each of them.
    Events(Vec<WatchEvent>),
    /// No event up to this revision is missing; see [`ProgressOrigin`].
    Progress {
        /// The revision.
        revision: i64,
        /// Origin of the message.
        origin: ProgressOrigin,
    },
}

/// Origin of a progress message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressOrigin {
    /// Sent by etcd after some time without events (10 minutes by default). Events up to the revision came before it.
    Periodic,
    /// Answer to [`Watch::request_progress`]. Events up to the revision came before it only from etcd 3.4.25 and
    /// 3.5.8 on: older versions send it at once, even if events wait to be sent.
    Requested,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key was written.
    Put(KeyValue),
    /// The key was deleted.
    Delete {
        /// The key.
        key: Bytes,
        /// Revision of the deletion.
        mod_revision: i64,
    },
}

/// End of a watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// Revisions that the watch has not seen yet are gone.
    #[error(
        "history of etcd up to revision {revision} is compacted\n  hint: read the keys, then watch from there"
    )]
    Compacted {
        /// The first revision that can be watched.
        revision: i64,
    },
    /// The member was lost, or has ended the watch.
    #[error("watch of etcd has ended: {0}")]
    Lost(EtcdError),
}

impl WatchQuery {
    /// A watch of keys from now on.
    #[must_use]
    pub fn new(keys: KeyRange) -> Self {
        Self { keys, start: 0 }
    }

    /// The same watch from a revision on, whose events included.
    #[must_use]
    pub fn starting_at(self, revision: i64) -> Self {
        Self { start: revision, ..self }
    }

    fn message(&self) -> WatchRequest {
        let (key, range_end) = (self.keys.key.clone(), self.keys.end.clone());
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: self.start,
            progress_notify: true,
            fragment: true,
        };
        WatchRequest { request_union: Some(WatchRequestUnion::Create(create)) }
    }
}

impl WatchEvent {
    /// Revision of the change.
    #[must_use]
    pub fn mod_revision(&self) -> i64 {
        match self {
            Self::Put(entry) => entry.mod_revision,
            Self::Delete { mod_revision, .. } => *mod_revision,
        }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put(entry) => &entry.key,
            Self::Delete { key, .. } => key,
        }
    }
}

impl Watch {
    /// State of the store when the watch began. A watch from now on sees every later revision.
    #[must_use]
    pub fn created(&self) -> Header {
        self.created
    }

    /// Asks for a progress message. Does nothing if such requests already wait to be sent.
    ///
    /// Etcd may not answer while the watch has not seen all of the past; before 3.4.31 and 3.5.13, it may not answer
    /// until the first event either.
    pub fn request_progress(&self) {
        let request = WatchRequestUnion::Progress(WatchProgressRequest {});
        drop(self.requests.try_send(WatchRequest { request_union: Some(request) }));
    }

    /// Waits for the next item. May be dropped at any time without losing anything.
    ///
    /// # Errors
    /// Fails if the watch has ended; then always, with the same error.
    pub async fn next(&mut self) -> Result<WatchItem, WatchEnd> {
        loop {
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            let taken = match self.responses.message().await {
                Ok(Some(response)) => self.take(response),
                Ok(None) => Err(self.lost(Doubt::Broken, "the member has ended the watch")),
                Err(status) => Err(WatchEnd::Lost(error_of(&status, self.chosen.name()))),
            };
            match taken {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                Err(end) => self.finish(end),
            }
        }
    }

    /// The item of a response, if it has one.
    fn take(&mut self, response: WatchResponse) -> Result<Option<WatchItem>, WatchEnd> {
        if response.canceled {
            return Err(cancellation(&response, &self.chosen));
        }
        if !response.events.is_empty() {
            let piece = if response.fragment { Piece::Inner } else { Piece::Last };
            let complete = self.assembly.add(response.events, piece);
            let complete = complete.map_err(|error| self.lost(Doubt::InvalidAnswer, &error.to_string()))?;
            return Ok((!complete.is_empty()).then_some(WatchItem::Events(complete)));
        }
        let revision = response.header.map_or(0, |header| header.revision);
        let origin =
            if response.watch_id == NO_WATCH { ProgressOrigin::Requested } else { ProgressOrigin::Periodic };
        Ok((!response.created && revision > 0).then_some(WatchItem::Progress { revision, origin }))
    }

    fn lost(&self, doubt: Doubt, message: &str) -> WatchEnd {
        WatchEnd::Lost(EtcdError::unknown(self.chosen.name(), doubt, message))
    }

    fn finish(&mut self, end: WatchEnd) {
        if let WatchEnd::Lost(error) = &end
            && error.is_of_endpoint()
        {
            self.client.leave(&self.chosen);
        }
        self.end = Some(end);
    }
}

/// The end that a member gives to a watch.
fn cancellation(response: &WatchResponse, chosen: &ChosenEndpoint) -> WatchEnd {
    match response.compact_revision {
        revision if revision > 0 => WatchEnd::Compacted { revision },
        _ => WatchEnd::Lost(error_of_cancellation(&response.cancel_reason, chosen.name())),
    }
}

impl EtcdClient {
    /// Begins a watch. The time limit applies until the member has confirmed it.
    ///
    /// # Errors
    /// Fails if there is no confirmation. A start that has been compacted is an end of the watch.
    pub async fn watch(&self, query: &WatchQuery) -> Result<Watch, EtcdError> {
        let chosen = self.chosen();
        self.limited(&chosen, &CallProgress::default(), self.begin_watch(&chosen, query)).await
    }

    async fn begin_watch(&self, chosen: &ChosenEndpoint, query: &WatchQuery) -> Result<Watch, EtcdError> {
        let token = self.token(chosen).await?;
        let value = token.as_ref().and_then(|token| token.value.as_ref());
        let begun = self.open_watch(chosen, query, value).await;
        if !begun.as_ref().is_err_and(|error| self.is_for_login(error)) {
            return begun;
        }
        let token = self.renew_token(chosen, token.as_ref()).await?;
        self.open_watch(chosen, query, token.value.as_ref()).await
    }

    async fn open_watch(
        &self,
        chosen: &ChosenEndpoint,
        query: &WatchQuery,
        token: Option<&MetadataValue<Ascii>>,
    ) -> Result<Watch, EtcdError> {
        let connection = chosen.enter().await?;
        let failed = |status: tonic::Status| error_of(&status, chosen.name());
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        // The queue is empty.
        drop(requests.try_send(query.message()));
        let request = WATCH.request(ReceiverStream::new(queue), token);
        let codec = MessageCodec::<WatchRequest, WatchResponse>::new();
        let path = PathAndQuery::from_static(WATCH.path);
        let opened = chosen.grpc(&connection).streaming(request, path, codec).await;
        let mut responses = opened.map_err(failed)?.into_inner();
        let ended = || EtcdError::unknown(chosen.name(), Doubt::Broken, "the member has ended the watch");
        let first = responses.message().await.map_err(failed)?.ok_or_else(ended)?;
        let end = match first.canceled.then(|| cancellation(&first, chosen)) {
            Some(WatchEnd::Lost(error)) => return Err(error),
            end @ (Some(WatchEnd::Compacted { .. }) | None) => end,
        };
        Ok(Watch {
            client: self.clone(),
            chosen: chosen.clone(),
            requests,
            responses,
            created: Header::of(first.header, chosen)?,
            assembly: EventAssembly::new(self.limits().answer_bytes),
            end,
            _connection: connection,
        })
    }
}
