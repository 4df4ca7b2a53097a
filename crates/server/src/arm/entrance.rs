//! What all doors share by which clients of Azure come in: who signs tokens, who gets one, and where the listener with TLS is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::signing::Signer;
use crate::operator::Access;
use crate::tls::{Source, Tls};

/// How clients of Azure are to come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmPlan {
    /// An address for TLS, and where its certificate comes from. Without it they come in where operators do.
    pub listen: Option<(SocketAddr, Source)>,
    /// Names with dots by which they may call the server there.
    pub host_names: Vec<String>,
    /// Who gets a token, and is let in.
    pub credentials: Credentials,
    /// Where the key is kept that tokens are signed with; in memory, if nowhere.
    pub key_dir: Option<PathBuf>,
    /// The directory (`tid`) that tokens name.
    pub directory: String,
}

/// Who gets a token, and is let in by the listener with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Whoever asks.
    Anyone,
    /// Whoever has a token of an operator's.
    Tokens,
}

/// What doors share.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(super) directory: String,
    pub(super) credentials: Credentials,
    pub(super) signer: Signer,
    /// The port of the listener with TLS, and its certificates.
    pub(super) listener: Option<(u16, Arc<Tls>)>,
}

impl Credentials {
    /// Who may use the listener with TLS.
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Anyone => Access::Open("anyone"),
            Self::Tokens => Access::Tokens,
        }
    }
}

impl Entrance {
    /// As a plan says; the listener is there already.
    pub(crate) fn new(plan: &ArmPlan, listener: Option<(u16, Arc<Tls>)>) -> std::io::Result<Self> {
        let signer = match &plan.key_dir {
            Some(directory) => Signer::kept_in(directory)?,
            None => Signer::forgetful()?,
        };
        Ok(Self { directory: plan.directory.clone(), credentials: plan.credentials, signer, listener })
    }
}
