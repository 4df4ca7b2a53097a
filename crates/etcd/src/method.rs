//! Methods of etcd's services.

use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};

/// A method of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(crate) path: &'static str,
    demand: LeaderDemand,
}

/// The demand that the member knows a leader. Without one, it rejects the call at once, and ends a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaderDemand {
    Demanded,
    NotDemanded,
}

/// Metadata fields of etcd.
const LEADER_FIELD: &str = "hasleader";
const TOKEN_FIELD: &str = "token";

pub(crate) const RANGE: Method = Method::with_leader("/etcdserverpb.KV/Range");
pub(crate) const SERIALIZABLE_RANGE: Method = Method::without_leader("/etcdserverpb.KV/Range");
pub(crate) const PUT: Method = Method::with_leader("/etcdserverpb.KV/Put");
pub(crate) const DELETE_RANGE: Method = Method::with_leader("/etcdserverpb.KV/DeleteRange");
pub(crate) const TXN: Method = Method::with_leader("/etcdserverpb.KV/Txn");
pub(crate) const COMPACT: Method = Method::with_leader("/etcdserverpb.KV/Compact");
pub(crate) const WATCH: Method = Method::with_leader("/etcdserverpb.Watch/Watch");
pub(crate) const LEASE_GRANT: Method = Method::with_leader("/etcdserverpb.Lease/LeaseGrant");
pub(crate) const LEASE_REVOKE: Method = Method::with_leader("/etcdserverpb.Lease/LeaseRevoke");
pub(crate) const LEASE_KEEP_ALIVE: Method = Method::with_leader("/etcdserverpb.Lease/LeaseKeepAlive");
pub(crate) const STATUS: Method = Method::without_leader("/etcdserverpb.Maintenance/Status");
pub(crate) const ALARM: Method = Method::with_leader("/etcdserverpb.Maintenance/Alarm");
pub(crate) const MEMBER_LIST: Method = Method::with_leader("/etcdserverpb.Cluster/MemberList");
pub(crate) const AUTHENTICATE: Method = Method::with_leader("/etcdserverpb.Auth/Authenticate");

impl Method {
    const fn with_leader(path: &'static str) -> Self {
        Self { path, demand: LeaderDemand::Demanded }
    }

    const fn without_leader(path: &'static str) -> Self {
        Self { path, demand: LeaderDemand::NotDemanded }
    }

    /// A request with the metadata of a call.
    pub(crate) fn request<Q>(self, message: Q, token: Option<&MetadataValue<Ascii>>) -> Request<Q> {
        let mut request = Request::new(message);
        match self.demand {
            LeaderDemand::Demanded => {
                request.metadata_mut().insert(LEADER_FIELD, MetadataValue::from_static("true"));
            }
            LeaderDemand::NotDemanded => {}
        }
        if let Some(token) = token {
            request.metadata_mut().insert(TOKEN_FIELD, token.clone());
        }
        request
    }
}
