//! The context of requests: callers, conditions, and the keys under which requests can be repeated.

use std::fmt;

use forewarn_types::base64url;
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::Permit;

/// The caller of a request, and its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestContext {
    /// The caller: `token NAME`, `socket`, `anyone`, or `forewarn` itself. The audit log shows it.
    pub by: String,
    /// Number of the token of the caller. The token must be valid when the request is decided.
    #[serde(deserialize_with = "Option::deserialize")]
    pub token: Option<u32>,
    /// The permit that the commands are checked against. No permit means no check: a message says so, or is rejected.
    #[serde(deserialize_with = "Option::deserialize")]
    pub permit: Option<PermitCheck>,
    /// Number of the audit entry of which this request is a continuation: it gets no entry of its own.
    #[serde(deserialize_with = "Option::deserialize")]
    pub because: Option<u64>,
    /// The key that makes the request safe to repeat.
    #[serde(deserialize_with = "Option::deserialize")]
    pub once: Option<IdempotencyKey>,
    /// The id that does the same for a request without a key, which a server of a realm forwards to the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<ForwardId>,
    /// Revision of the cluster for which the request was planned. If the cluster has another one, the request is
    /// refused.
    #[serde(deserialize_with = "Option::deserialize")]
    pub if_revision: Option<u64>,
    /// The request as the audit log shows it, where the commands were derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub asked: Option<serde_json::Value>,
    /// Refuse the request if no machine gets notice of an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_notice: bool,
}

/// A permit, and the origin of the host names in the commands that are checked against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermitCheck {
    pub permit: Permit,
    /// The origin of host names.
    pub hosts: HostNames,
}

/// The origin of the host names in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostNames {
    /// The caller has named them: it must be allowed to know them.
    FromCaller,
    /// The server has chosen them.
    ChosenHere,
}

/// A key that makes a request safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdempotencyKey {
    pub key: String,
    /// A hash of the request: a different request needs a different key.
    #[serde(with = "base64url")]
    pub fingerprint: [u8; 32],
}

/// A random id of a forwarded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardId(#[serde(with = "base64url")] pub [u8; 16]);

impl fmt::Display for ForwardId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&base64url::encode(&self.0))
    }
}

/// The caller of requests that the server makes by itself.
pub const ITSELF: &str = "forewarn";

impl Permit {
    /// The context of a request with this permit. The token is checked again when the request is decided.
    #[must_use]
    pub fn context(&self) -> RequestContext {
        RequestContext { by: self.by.clone(), token: self.token, ..RequestContext::default() }
    }
}

impl RequestContext {
    /// Returns true if the response to the request is stored, and its repetition gets the same one.
    #[must_use]
    pub fn has_receipt(&self) -> bool {
        self.once.is_some() || self.forwarded.is_some()
    }
}

impl Default for RequestContext {
    fn default() -> Self {
        Self {
            by: ITSELF.to_owned(),
            token: None,
            permit: None,
            because: None,
            once: None,
            forwarded: None,
            if_revision: None,
            asked: None,
            require_notice: false,
        }
    }
}

/// Reads a value that is present, `null` too: `null` and no value differ in the audit log.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}
