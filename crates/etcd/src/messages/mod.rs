//! Messages of etcd's gRPC services, as far as this client needs them. Field numbers are those of etcd's `rpc.proto` and
//! `kv.proto`; fields that nobody reads are left out, because a reader skips fields that it does not know.

mod administration;
mod keys;
mod leases;
mod watches;

use prost::Message;

pub(crate) use administration::{
    AlarmMember, AlarmRequest, AlarmResponse, AuthenticateRequest, AuthenticateResponse, MemberListRequest,
    MemberListResponse, StatusRequest, StatusResponse, alarm_actions, alarm_types,
};
pub(crate) use keys::{
    CompactionRequest, CompactionResponse, CompareMessage, CompareTarget, DeleteRangeRequest,
    DeleteRangeResponse, KeyValueMessage, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    RequestUnion, ResponseOp, ResponseUnion, TxnRequest, TxnResponse, compare_results, compare_targets,
};
pub(crate) use leases::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse,
};
pub(crate) use watches::{
    EventMessage, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestUnion, WatchResponse,
    event_types,
};

/// The state of the store when a request was applied.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub(crate) cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) member_id: u64,
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(crate) raft_term: u64,
}
