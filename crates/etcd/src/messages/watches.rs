//! Messages of the service `etcdserverpb.Watch`.

use bytes::Bytes;
use prost::{Message, Oneof};

use super::{KeyValueMessage, ResponseHeader};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(oneof = "WatchRequestUnion", tags = "1, 3")]
    pub(crate) request_union: Option<WatchRequestUnion>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum WatchRequestUnion {
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
    #[prost(message, tag = "3")]
    Progress(WatchProgressRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(crate) progress_notify: bool,
    /// Splits responses that are larger than a request may be, so that no response exceeds a limit of the reader.
    #[prost(bool, tag = "8")]
    pub(crate) fragment: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchProgressRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    /// -1 in the answer to a progress request.
    #[prost(int64, tag = "2")]
    pub(crate) watch_id: i64,
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(crate) cancel_reason: String,
    #[prost(bool, tag = "7")]
    pub(crate) fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<EventMessage>,
}

/// `mvccpb.Event`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EventMessage {
    /// One of [`event_types`].
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValueMessage>,
}

/// `Event.EventType`.
pub(crate) mod event_types {
    pub(crate) const PUT: i32 = 0;
    pub(crate) const DELETE: i32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_message_of_a_union_is_sent() {
        let request =
            WatchRequest { request_union: Some(WatchRequestUnion::Progress(WatchProgressRequest {})) };
        assert_eq!(request.encode_to_vec(), b"\x1a\x00");
    }

    #[test]
    fn the_id_of_no_watch_is_negative_and_has_ten_bytes() {
        let bytes = b"\x0a\x02\x18\x07\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        let response = WatchResponse::decode(&bytes[..]).unwrap();
        assert_eq!((response.watch_id, response.header.unwrap().revision), (-1, 7));
    }

    #[test]
    fn an_event_is_field_11_and_unknown_fields_are_skipped() {
        // Events have field 11; field 3 of an event is the previous value, which nobody asks for.
        let bytes = b"\x5a\x0e\x08\x01\x12\x05\x0a\x01k\x18\x09\x1a\x03\x0a\x01o";
        let response = WatchResponse::decode(&bytes[..]).unwrap();
        let event = &response.events[0];
        let kv = event.kv.as_ref().unwrap();
        assert_eq!((event.kind, &kv.key[..], kv.mod_revision), (event_types::DELETE, &b"k"[..], 9));
    }
}
