//! Messages between servers, as JSON.
//!
//! A request and its answer are exact: anything unknown in them is rejected. A heartbeat is lenient: a server of another
//! release may add members, and an upgrade must not silence its heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_control::request::{Reply, Request};
use forewarn_control::{ControlError, Stream};
use forewarn_types::{Name, Steady, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

pub(crate) const HELLO: &str = "/peer/v1/hello";
pub(crate) const HEARTBEAT: &str = "/peer/v1/heartbeat";
pub(crate) const REQUEST: &str = "/peer/v1/request";
pub(crate) const MOVED: &str = "/peer/v1/moved";
pub(crate) const AUDIT: &str = "/peer/v1/audit";
pub(crate) const SEARCH: &str = "/peer/v1/audit/search";

/// The number of servers that a forwarded request passes: it is never forwarded again.
const HOPS: u8 = 1;

/// The state of a server, as it tells the others. The answer to a heartbeat is the same from the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Name of the sender. It must be the name in its certificate.
    pub from: Name,
    /// Steady clock of the sender when it wrote this.
    pub sent: Steady,
    /// Wall clock of the sender when it wrote this.
    pub wall: Timestamp,
    /// Milliseconds since the sender started, or returned after a gap.
    pub present_millis: u64,
    /// The willingness of the sender to own streams.
    pub duty: ServerDuty,
    /// Milliseconds since the engine last answered the sender. `None` if it never has.
    pub engine_age_millis: Option<u64>,
    /// Milliseconds since the sender last heard from each other server.
    pub silent_millis: BTreeMap<Name, u64>,
    /// Number up to which the sender has published each stream. Empty as long as it has no listeners for VMs.
    pub followed: BTreeMap<Stream, u64>,
    /// Streams that the sender owns.
    pub owned: BTreeMap<Stream, OwnedStream>,
    /// Tenants whose last polls the sender wants to know, at most [`crate::POLL_QUESTIONS_MAX`].
    #[serde(default)]
    pub asked: AskedTenants,
    /// Milliseconds since tenants that the receiver has asked about last polled the sender, or since the sender started.
    #[serde(default)]
    pub heard: HeardTenants,
}

/// Tenants of clusters whose last polls a server wants to know.
pub type AskedTenants = BTreeMap<Stream, BTreeSet<TenantId>>;

/// Milliseconds since the last polls of tenants of clusters.
pub type HeardTenants = BTreeMap<Stream, BTreeMap<TenantId, u64>>;

/// Numbers of batches that a server has published, of some streams.
pub type SeenNumbers = BTreeMap<Stream, u64>;

/// The willingness of a server to own streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerDuty {
    /// It takes streams.
    Active,
    /// It gives its streams away and takes none.
    Draining,
}

/// A stream that the sender of a heartbeat owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedStream {
    /// Term of the ownership.
    pub term: u64,
    /// Number up to which the owner has published the stream.
    pub published: u64,
}

/// A request of another server, which does not own the stream of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The term in which the sender believes this server to be the owner.
    pub term: u64,
    /// The batches that the sender has published. The answer must not come from an earlier state.
    pub seen: SeenNumbers,
    /// The request. It must be answered here: a request is forwarded once.
    pub request: Request,
}

/// A request as it is sent.
#[derive(Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutgoingRequest<'a> {
    term: u64,
    hops: u8,
    seen: &'a SeenNumbers,
    request: &'a Request,
}

/// A request as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IncomingRequest {
    term: u64,
    hops: u8,
    seen: SeenNumbers,
    request: Request,
}

/// The decision of the owner about a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerDecision {
    /// The reply, or the reason of a rejection.
    pub result: Result<Reply, ControlError>,
    /// Number up to which the owner has published the stream: with the request, if it was carried out.
    pub published: u64,
}

/// The answer of a server that does not own the stream of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotOwner {
    /// The owner, as far as this server knows.
    #[serde(deserialize_with = "Option::deserialize")]
    pub owner: Option<Name>,
    /// Term of that owner.
    pub term: u64,
}

/// A stream has another owner after a handover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedStream {
    /// The stream.
    pub stream: Stream,
    /// Term of the new owner.
    pub term: u64,
    /// The new owner.
    pub to: Name,
}

/// Old entries of an audit log: those of a stream after a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// The stream.
    pub stream: Stream,
    /// Number of the last entry that the caller has; 0 for none.
    pub after: u64,
}

/// The answer to a new connection: both sides have accepted each other's certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Name of the server that answers.
    pub(crate) server: Name,
}

/// The reason for which a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RejectedMessage {
    pub(crate) reason: String,
}

impl<'a> OutgoingRequest<'a> {
    pub(crate) fn new(term: u64, seen: &'a SeenNumbers, request: &'a Request) -> Self {
        Self { term, hops: HOPS, seen, request }
    }
}

impl IncomingRequest {
    /// The request, unless it was forwarded more than once.
    pub(crate) fn received(self) -> Option<ReceivedRequest> {
        let Self { term, hops, seen, request } = self;
        (hops == HOPS).then_some(ReceivedRequest { term, seen, request })
    }
}

impl AuditQuery {
    /// The target of a request.
    pub(crate) fn target(&self) -> String {
        format!("{AUDIT}?stream={}&after={}", self.stream, self.after)
    }

    /// Reads the query of a target: both members, once each, in this order.
    pub(crate) fn parse(query: &str) -> Option<Self> {
        let (stream, after) = query.strip_prefix("stream=")?.split_once("&after=")?;
        let number = after.parse().ok().filter(|number: &u64| number.to_string() == after)?;
        Some(Self { stream: stream.parse().ok()?, after: number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::ClusterId;
    use forewarn_control::request::ClusterRequest;
    use serde_json::json;

    #[test]
    fn a_heartbeat_is_read_as_it_was_written_and_may_have_more_members() {
        let name = |text: &str| Name::new(text).unwrap();
        let heartbeat = Heartbeat {
            from: name("a"),
            sent: Steady::from_millis(5),
            wall: Timestamp::from_millis(7),
            present_millis: 60_000,
            duty: ServerDuty::Draining,
            engine_age_millis: None,
            silent_millis: BTreeMap::from([(name("b"), 250)]),
            followed: BTreeMap::from([(Stream::Shared, 1), (Stream::Cluster(ClusterId(3)), 9)]),
            owned: BTreeMap::from([(Stream::Cluster(ClusterId(3)), OwnedStream { term: 2, published: 9 })]),
            asked: BTreeMap::from([(Stream::Cluster(ClusterId(3)), BTreeSet::from([TenantId(4)]))]),
            heard: BTreeMap::from([(Stream::Cluster(ClusterId(3)), BTreeMap::from([(TenantId(5), 250)]))]),
        };
        let mut json = serde_json::to_value(&heartbeat).unwrap();
        assert_eq!(json["followed"], json!({ "shared": 1, "cluster-3": 9 }));
        assert_eq!(serde_json::from_value::<Heartbeat>(json.clone()).unwrap(), heartbeat);
        json["more"] = json!(1);
        assert_eq!(serde_json::from_value::<Heartbeat>(json.clone()).unwrap(), heartbeat);
        let members = json.as_object_mut().unwrap();
        members.retain(|name, _| name != "asked" && name != "heard");
        let older = serde_json::from_value::<Heartbeat>(json).unwrap();
        assert!(older.asked.is_empty() && older.heard.is_empty());
    }

    #[test]
    fn a_request_is_forwarded_once() {
        let request = Request::Cluster(ClusterId(1), ClusterRequest::Sweep);
        let seen = SeenNumbers::from([(Stream::Shared, 3), (Stream::Cluster(ClusterId(1)), 7)]);
        let mut json = serde_json::to_value(OutgoingRequest::new(4, &seen, &request)).unwrap();
        let read = |json: &serde_json::Value| {
            serde_json::from_value::<IncomingRequest>(json.clone()).unwrap().received()
        };
        assert_eq!(read(&json), Some(ReceivedRequest { term: 4, seen, request }));
        json["hops"] = json!(2);
        assert_eq!(read(&json), None);
        json["more"] = json!(1);
        assert!(serde_json::from_value::<IncomingRequest>(json).is_err());
    }

    #[test]
    fn a_query_has_one_spelling() {
        for stream in [Stream::Shared, Stream::Cluster(ClusterId(12))] {
            let query = AuditQuery { stream, after: 7 };
            let target = query.target();
            assert_eq!(AuditQuery::parse(target.split_once('?').unwrap().1), Some(query), "{target}");
        }
        for wrong in
            ["", "stream=shared", "after=1&stream=shared", "stream=shared&after=01", "stream=x&after=1"]
        {
            assert_eq!(AuditQuery::parse(wrong), None, "{wrong}");
        }
    }
}
