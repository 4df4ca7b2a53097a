//! Messages of the service `etcdserverpb.KV`.

use bytes::Bytes;
use prost::{Message, Oneof};

use super::ResponseHeader;

/// `mvccpb.KeyValue`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValueMessage {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
    #[prost(bool, tag = "7")]
    pub(crate) serializable: bool,
    #[prost(bool, tag = "8")]
    pub(crate) keys_only: bool,
    #[prost(bool, tag = "9")]
    pub(crate) count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValueMessage>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
    #[prost(int64, tag = "4")]
    pub(crate) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    pub(crate) deleted: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "RequestUnion", tags = "1, 2, 3")]
    pub(crate) request: Option<RequestUnion>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum RequestUnion {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "ResponseUnion", tags = "1, 2, 3")]
    pub(crate) response: Option<ResponseUnion>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ResponseUnion {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
}

/// `etcdserverpb.Compare`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompareMessage {
    /// One of [`compare_results`].
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    /// One of [`compare_targets`].
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(oneof = "CompareTarget", tags = "4, 5, 6, 7, 8")]
    pub(crate) target_union: Option<CompareTarget>,
    #[prost(bytes = "bytes", tag = "64")]
    pub(crate) range_end: Bytes,
}

/// The value that a property of a key is compared with.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum CompareTarget {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes = "bytes", tag = "7")]
    Value(Bytes),
    #[prost(int64, tag = "8")]
    Lease(i64),
}

/// `Compare.CompareResult`.
pub(crate) mod compare_results {
    pub(crate) const EQUAL: i32 = 0;
    pub(crate) const GREATER: i32 = 1;
    pub(crate) const LESS: i32 = 2;
    pub(crate) const NOT_EQUAL: i32 = 3;
}

/// `Compare.CompareTarget`.
pub(crate) mod compare_targets {
    pub(crate) const VERSION: i32 = 0;
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const MOD: i32 = 2;
    pub(crate) const VALUE: i32 = 3;
    pub(crate) const LEASE: i32 = 4;
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<CompareMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
    /// Answers only when the removed revisions are gone from the database.
    #[prost(bool, tag = "2")]
    pub(crate) physical: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_has_the_bytes_of_the_protocol() {
        let put = PutRequest { key: "k".into(), value: "vv".into(), lease: 300 };
        // 1: bytes, 2: bytes, 3: varint 300 = 0xac 0x02.
        let expected = b"\x0a\x01k\x12\x02vv\x18\xac\x02";
        assert_eq!(put.encode_to_vec(), expected);
        assert_eq!(PutRequest::decode(&expected[..]).unwrap(), put);
    }

    #[test]
    fn a_transaction_has_the_bytes_of_the_protocol() {
        let compare = CompareMessage {
            result: compare_results::EQUAL,
            target: compare_targets::MOD,
            key: "k".into(),
            target_union: Some(CompareTarget::ModRevision(0)),
            range_end: Bytes::new(),
        };
        let put = PutRequest { key: "k".into(), value: "v".into(), lease: 0 };
        let delete = DeleteRangeRequest { key: "d".into(), range_end: Bytes::new() };
        let txn = TxnRequest {
            compare: vec![compare],
            success: vec![RequestOp { request: Some(RequestUnion::Put(put)) }],
            failure: vec![RequestOp { request: Some(RequestUnion::DeleteRange(delete)) }],
        };
        // The compare: 2: MOD, 3: key, 6: revision 0, which a union has even if it is 0.
        let compare = b"\x0a\x07\x10\x02\x1a\x01k\x30\x00";
        // The success: a put (2) of 6 bytes. The failure: a deletion (3) of 3 bytes.
        let success = b"\x12\x08\x12\x06\x0a\x01k\x12\x01v";
        let failure = b"\x1a\x05\x1a\x03\x0a\x01d";
        let expected = [&compare[..], success, failure].concat();
        assert_eq!(txn.encode_to_vec(), expected);
        assert_eq!(TxnRequest::decode(&expected[..]).unwrap(), txn);
    }

    #[test]
    fn a_range_of_a_compare_has_a_tag_of_two_bytes() {
        let compare = CompareMessage { range_end: "z".into(), ..CompareMessage::default() };
        // Field 64, bytes: 64 << 3 | 2 = 514 = 0x82 0x04.
        assert_eq!(compare.encode_to_vec(), b"\x82\x04\x01z");
    }
}
