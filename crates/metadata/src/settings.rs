//! Settings of the endpoint, and the identification of callers.

use std::sync::Arc;
use std::time::Duration;

use forewarn_imds::Edition;
use forewarn_types::Name;
use forewarn_url::OwnHosts;

use crate::callers::Caller;
use crate::limits::{ConnectionLimits, Limits};

/// Settings that an operator may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Response to the request that enables Scheduled Events for its tenant.
    pub first_answer: FirstAnswer,
    /// Older editions are rejected as unknown. The oldest one does not require the `Metadata` header.
    pub oldest_edition: Edition,
    /// Limits of one machine; `None` for no limits.
    pub limits: Option<Limits>,
    pub connections: ConnectionLimits,
    pub identity_token: IdentityToken,
    /// Names that `Host` may have.
    pub hosts: OwnHosts,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_answer: FirstAnswer::Now,
            oldest_edition: Edition::V2017_03_01,
            limits: None,
            connections: ConnectionLimits::default(),
            identity_token: IdentityToken::Off,
            hosts: OwnHosts::default(),
        }
    }
}

/// Response to the request that enables Scheduled Events for its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAnswer {
    Now,
    /// The document, after a delay: real services take up to two minutes.
    Delay(Duration),
    /// 200 without a body, as real services have been observed to respond.
    Empty,
}

/// Identity tokens at `/metadata/identity/oauth2/token`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityToken {
    Off,
    /// Unsigned tokens, for clients that insist on having one.
    Unsigned {
        /// Directory id (`tid`) of the tokens.
        directory: String,
    },
}

/// Identification of callers on a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By the source address, among the machines of one cluster.
    Address {
        /// Name of the cluster. If no cluster has it, all callers are unknown.
        cluster: Name,
    },
    /// All callers are this machine: `name` or `tenant/name` in the default cluster, or `cluster/tenant/name`.
    Machine(String),
    /// By the path: `/vm/NAME/metadata/…` or `/vm/TENANT/NAME/metadata/…` for the default cluster, and
    /// `/vm/CLUSTER/TENANT/NAME/metadata/…`. Only for listeners that no untrusted client reaches.
    Prefix {
        /// Machine of a request without a prefix; `None` to reject it.
        default: Option<String>,
    },
    /// By the source address among the machines of the default cluster, if one of them has an address; by the path
    /// otherwise. A caller on loopback whose address no machine has is identified by the path in any case.
    AddressOrPrefix {
        /// Machine of a request that is identified by the path and has no prefix; `None` to reject it.
        default: Option<String>,
    },
}

impl Identity {
    /// The name of the caller by the path, with the rest of the path.
    pub(crate) fn name_in_path<'a>(&'a self, path: &'a str) -> Option<(&'a str, &'a str)> {
        let (Self::Prefix { default } | Self::AddressOrPrefix { default }) = self else { return None };
        prefixed(path).or_else(|| Some((default.as_deref()?, path)))
    }
}

/// Identity of a caller as far as listener and address tell.
pub(crate) enum NetworkIdentity {
    Caller(Arc<Caller>),
    Unknown,
    Undetermined,
}

/// Splits `/vm/NAME/metadata…`, `/vm/TENANT/NAME/metadata…` and `/vm/CLUSTER/TENANT/NAME/metadata…` before `/metadata`.
fn prefixed(path: &str) -> Option<(&str, &str)> {
    let after = path.strip_prefix("/vm/")?;
    let slashes = after.match_indices('/').map(|(at, _)| at);
    let is_metadata = |at: &usize| {
        let segment = after[at + 1..].split('/').next().unwrap_or_default();
        segment.eq_ignore_ascii_case("metadata")
    };
    slashes.take(3).find(is_metadata).map(|at| after.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_a_machine_with_or_without_its_tenant() {
        let cases = [
            ("/vm/web_0/metadata/versions", Some(("web_0", "/metadata/versions"))),
            ("/vm/web/web_0/Metadata/versions", Some(("web/web_0", "/Metadata/versions"))),
            ("/vm/metadata/m/metadata", Some(("metadata/m", "/metadata"))),
            ("/vm/west/web/web_0/metadata/versions", Some(("west/web/web_0", "/metadata/versions"))),
            ("/vm/a/b/c/d/metadata/versions", None),
            ("/vm/web_0", None),
            ("/vm/web_0/", None),
            ("/metadata/versions", None),
        ];
        for (path, expected) in cases {
            assert_eq!(prefixed(path), expected, "{path}");
        }
    }
}
