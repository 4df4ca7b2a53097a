//! What may be chosen about the endpoint, and how it knows who is calling.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_imds::Edition;

use crate::directory::{Caller, Directory};
use crate::limits::{ConnectionLimits, Limits};

/// What an operator may choose about the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the request that enables Scheduled Events for its tenant is answered.
    pub first_answer: FirstAnswer,
    /// Older editions are refused as if they were unknown. The oldest one of all is a way round the `Metadata` header.
    pub oldest_edition: Edition,
    /// How much of the endpoint one machine may use; `None`: as much as it likes.
    pub limits: Option<Limits>,
    /// How many connections there may be, and how long each may take.
    pub connections: ConnectionLimits,
    /// Whether there are identity tokens.
    pub identity_token: IdentityToken,
    /// Names with dots that `Host` may have; addresses, `localhost` and single labels need no entry.
    pub host_names: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_answer: FirstAnswer::Now,
            oldest_edition: Edition::V2017_03_01,
            limits: None,
            connections: ConnectionLimits::default(),
            identity_token: IdentityToken::Off,
            host_names: Vec::new(),
        }
    }
}

/// What the request that enables Scheduled Events for its tenant is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAnswer {
    /// The document, at once.
    Now,
    /// The document, after a while: real services take up to two minutes.
    Delay(Duration),
    /// A success without a body, as real services have been seen to answer.
    Empty,
}

/// Whether `/metadata/identity/oauth2/token` is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityToken {
    /// It is not.
    Off,
    /// It gives tokens that nobody signed, good for nothing but clients that insist on having one.
    Unsigned {
        /// The directory (`tid`) that they name.
        directory: String,
    },
}

/// How a listener knows who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By source address: whoever can answer from the address of a machine is that machine.
    Address,
    /// Everybody who reaches this listener is that machine: `name`, or `tenant/name`.
    Machine(String),
    /// By what the caller claims, `/vm/NAME/metadata/…` or `/vm/TENANT/NAME/metadata/…`. Never where anybody else can call.
    Prefix {
        /// Who calls without a prefix, if anybody may.
        default: Option<String>,
    },
}

impl Identity {
    /// The caller, where the network tells. Otherwise only a request can.
    pub(crate) fn by_network(&self, directory: &Directory, peer: Option<IpAddr>) -> Recognised {
        let caller = match self {
            Self::Address => peer.and_then(|peer| directory.at(peer)),
            Self::Machine(name) => directory.named(name),
            Self::Prefix { .. } => return Recognised::NotYet,
        };
        caller.map_or(Recognised::Stranger, Recognised::Caller)
    }

    /// The caller whom a path names, and the rest of that path.
    pub(crate) fn by_path<'a>(&self, directory: &Directory, path: &'a str) -> Option<(Arc<Caller>, &'a str)> {
        let Self::Prefix { default } = self else { return None };
        match prefixed(path) {
            Some((name, rest)) => Some((directory.named(name)?, rest)),
            None => Some((directory.named(default.as_deref()?)?, path)),
        }
    }
}

/// What the network tells of a caller.
pub(crate) enum Recognised {
    Caller(Arc<Caller>),
    Stranger,
    NotYet,
}

/// Splits `/vm/NAME/metadata…`, `/vm/TENANT/NAME/metadata…` and `/vm/CLUSTER/TENANT/NAME/metadata…` before the last slash that is shown here.
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
