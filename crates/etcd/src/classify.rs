//! Statuses of gRPC as errors of a call: not applied for sure, or unknown.
//!
//! The texts are those of etcd's `rpctypes`. A text is a rejection only if etcd finds the error before it proposes the
//! request to the cluster, or checks it before it applies anything. Everything else is unknown, `database space
//! exceeded` included: the write that exceeds the quota is applied, and answered with this error.

use std::error::Error as _;

use tonic::{Code, Status};

use crate::channel::SendFailure;
use crate::error::{Doubt, EtcdError, Rejection, error_chain};

/// Beginning of every text of etcd itself.
const PREFIX: &str = "etcdserver: ";

/// Texts of rejections, without their beginning.
const REJECTIONS: [(&str, Rejection); 29] = [
    ("key is not provided", Rejection::Invalid),
    ("key not found", Rejection::Invalid),
    ("value is provided", Rejection::Invalid),
    ("lease is provided", Rejection::Invalid),
    ("ttl is 0", Rejection::Invalid),
    ("too large lease TTL", Rejection::Invalid),
    ("too many operations in txn request", Rejection::TooManyOperations),
    ("duplicate key given in txn request", Rejection::DuplicateKey),
    ("request is too large", Rejection::TooLarge),
    ("mvcc: required revision has been compacted", Rejection::Compacted),
    ("mvcc: required revision is a future revision", Rejection::FutureRevision),
    ("requested lease not found", Rejection::LeaseNotFound),
    ("lease already exists", Rejection::LeaseExists),
    ("permission denied", Rejection::PermissionDenied),
    ("invalid auth token", Rejection::NotAuthenticated),
    ("user name is empty", Rejection::NotAuthenticated),
    ("revision of auth store is old", Rejection::NotAuthenticated),
    ("authentication failed, invalid user ID or password", Rejection::WrongLogin),
    ("user name not found", Rejection::WrongLogin),
    ("authentication is not enabled", Rejection::LoginDisabled),
    ("invalid auth management", Rejection::Invalid),
    ("role name not found", Rejection::Invalid),
    ("role name is empty", Rejection::Invalid),
    ("user name already exists", Rejection::Invalid),
    ("role name already exists", Rejection::Invalid),
    // Only said to requests that demand a leader, before they are processed.
    ("no leader", Rejection::NoLeader),
    ("too many requests", Rejection::Overloaded),
    ("not capable", Rejection::Unsupported),
    ("rpc not supported for learner", Rejection::Unsupported),
];

/// Text of the gRPC library of etcd about a request that exceeds its limit. Its text about an answer differs: then the
/// request has been applied.
const REQUEST_TOO_LARGE: &str = "grpc: received message larger than max";

/// Beginning of a status inside another text, as in the reason why a watch is cancelled.
const DESCRIPTION: &str = "desc = ";

/// The error of a status.
pub(crate) fn error_of(status: &Status, endpoint: String) -> EtcdError {
    if let Some(failure) = find_failure(status) {
        return failure.error(endpoint);
    }
    if let Some(source) = status.source() {
        // The status was made here: the connection broke before the answer was complete.
        return EtcdError::unknown(endpoint, Doubt::Broken, &error_chain(source));
    }
    let message = status.message();
    match rejection_of(status.code(), message) {
        Some(rejection) => EtcdError::rejected(endpoint, rejection, said(message)),
        None => EtcdError::unknown(endpoint, doubt_of(status.code(), message), said(message)),
    }
}

/// The error of a watch that etcd has cancelled, with its reason.
pub(crate) fn error_of_cancellation(reason: &str, endpoint: String) -> EtcdError {
    let message = reason.split_once(DESCRIPTION).map_or(reason, |(_, message)| message);
    match rejection_of(Code::Unknown, message) {
        Some(rejection) => EtcdError::rejected(endpoint, rejection, said(message)),
        None => EtcdError::unknown(endpoint, doubt_of(Code::Unknown, message), said(message)),
    }
}

fn find_failure(status: &Status) -> Option<&SendFailure> {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref() {
            return Some(failure);
        }
        cause = error.source();
    }
    None
}

fn rejection_of(code: Code, message: &str) -> Option<Rejection> {
    if message.starts_with(REQUEST_TOO_LARGE) {
        return Some(Rejection::TooLarge);
    }
    let text = message.strip_prefix(PREFIX).unwrap_or_default();
    let known = REJECTIONS.iter().find(|(known, _)| *known == text).map(|(_, rejection)| *rejection);
    known.or(match code {
        Code::InvalidArgument => Some(Rejection::Invalid),
        Code::PermissionDenied => Some(Rejection::PermissionDenied),
        Code::Unauthenticated => Some(Rejection::NotAuthenticated),
        Code::Unimplemented => Some(Rejection::Unsupported),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => None,
    })
}

fn doubt_of(code: Code, message: &str) -> Doubt {
    match message.strip_prefix(PREFIX) {
        Some("mvcc: database space exceeded") => return Doubt::NoSpace,
        Some("corrupt cluster") => return Doubt::Corrupt,
        Some(_) | None => {}
    }
    match code {
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Aborted => Doubt::Unavailable,
        // Also made here, about an answer that is too large or malformed.
        Code::OutOfRange | Code::Internal | Code::ResourceExhausted => Doubt::InvalidAnswer,
        Code::DataLoss => Doubt::Corrupt,
        Code::Ok
        | Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Unauthenticated => Doubt::Other,
    }
}

/// The text for a person: without the beginning that every text of etcd has.
fn said(message: &str) -> &str {
    let text = message.strip_prefix(PREFIX).unwrap_or(message);
    if text.is_empty() { "no message" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: Code, message: &str) -> EtcdError {
        error_of(&Status::new(code, message), "http://h/".to_owned())
    }

    #[test]
    fn requests_that_were_not_proposed_or_fail_a_check_are_rejected() {
        for (code, message, expected) in [
            (Code::InvalidArgument, "etcdserver: request is too large", Rejection::TooLarge),
            (
                Code::ResourceExhausted,
                "grpc: received message larger than max (2097200 vs. 2097152)",
                Rejection::TooLarge,
            ),
            (
                Code::InvalidArgument,
                "etcdserver: too many operations in txn request",
                Rejection::TooManyOperations,
            ),
            (
                Code::InvalidArgument,
                "etcdserver: duplicate key given in txn request",
                Rejection::DuplicateKey,
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                Rejection::Compacted,
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision",
                Rejection::FutureRevision,
            ),
            (Code::NotFound, "etcdserver: requested lease not found", Rejection::LeaseNotFound),
            (Code::FailedPrecondition, "etcdserver: lease already exists", Rejection::LeaseExists),
            (Code::PermissionDenied, "etcdserver: permission denied", Rejection::PermissionDenied),
            (Code::Unauthenticated, "etcdserver: invalid auth token", Rejection::NotAuthenticated),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                Rejection::WrongLogin,
            ),
            (Code::Unavailable, "etcdserver: no leader", Rejection::NoLeader),
            // Up to 3.5, etcd sends this one with another code.
            (Code::Unknown, "etcdserver: too many requests", Rejection::Overloaded),
            (Code::Unavailable, "etcdserver: rpc not supported for learner", Rejection::Unsupported),
            (Code::Unimplemented, "unknown service etcdserverpb.KV", Rejection::Unsupported),
            (Code::InvalidArgument, "etcdserver: something new", Rejection::Invalid),
        ] {
            assert_eq!(error(code, message).rejection(), Some(expected), "{message}");
            assert!(!error(code, message).may_be_applied(), "{message}");
        }
    }

    #[test]
    fn everything_else_may_have_been_applied() {
        for (code, message, expected) in [
            (Code::Unavailable, "etcdserver: request timed out", Doubt::Unavailable),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
                Doubt::Unavailable,
            ),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to connection lost",
                Doubt::Unavailable,
            ),
            (
                Code::Unavailable,
                "etcdserver: request timed out, waiting for the applied index took too long",
                Doubt::Unavailable,
            ),
            (Code::Unavailable, "etcdserver: leader changed", Doubt::Unavailable),
            (Code::Unavailable, "etcdserver: server stopped", Doubt::Unavailable),
            (Code::Unavailable, "etcdserver: unhealthy cluster", Doubt::Unavailable),
            (Code::DeadlineExceeded, "context deadline exceeded", Doubt::Unavailable),
            (Code::Cancelled, "context canceled", Doubt::Unavailable),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Doubt::NoSpace),
            (Code::DataLoss, "etcdserver: corrupt cluster", Doubt::Corrupt),
            (
                Code::ResourceExhausted,
                "grpc: trying to send message larger than max (9 vs. 8)",
                Doubt::InvalidAnswer,
            ),
            // Made here, about an answer: the same code as that of a compacted revision.
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 17 bytes",
                Doubt::InvalidAnswer,
            ),
            (Code::NotFound, "something new", Doubt::Other),
            (Code::Unknown, "raft: stopped", Doubt::Other),
            (Code::Unavailable, "", Doubt::Unavailable),
        ] {
            assert_eq!(error(code, message).doubt(), Some(expected), "{message}");
            assert!(error(code, message).may_be_applied(), "{message}");
        }
    }

    #[test]
    fn a_status_that_was_made_here_is_never_a_rejection() {
        let source = std::io::Error::other("etcdserver: permission denied");
        let status = Status::from_error(Box::new(source));
        assert_eq!(error_of(&status, String::new()).doubt(), Some(Doubt::Broken));
    }

    #[test]
    fn the_reason_of_a_cancelled_watch_is_classified_by_its_text() {
        let reason = "rpc error: code = PermissionDenied desc = etcdserver: permission denied";
        let error = error_of_cancellation(reason, String::new());
        assert_eq!(error.rejection(), Some(Rejection::PermissionDenied));
        let error = error_of_cancellation("etcdserver: invalid auth token", String::new());
        assert_eq!(error.rejection(), Some(Rejection::NotAuthenticated));
        assert_eq!(error_of_cancellation("", String::new()).doubt(), Some(Doubt::Other));
    }

    #[test]
    fn a_message_has_no_beginning_that_repeats_the_name_of_etcd() {
        let text = error(Code::Unavailable, "etcdserver: leader changed").to_string();
        assert_eq!(text, "unknown result of a request to etcd at http://h/: leader changed");
    }
}
