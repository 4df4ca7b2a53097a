//! Listeners without authentication, of `forewarn dev` and `forewarn test`.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use clap::Args;
use forewarn_url::ContainerNames;

#[derive(Args, Debug)]
pub(crate) struct OpenListenerArgs {
    /// Allow listeners beyond loopback, although they have no authentication, and the host names of containers:
    /// `*.docker.internal`, `*.svc` and `*.svc.cluster.local`
    #[arg(long)]
    i_know_this_is_open: bool,
}

impl OpenListenerArgs {
    /// Rejects listeners beyond loopback without `--i-know-this-is-open`.
    pub(crate) fn check(&self, listeners: impl IntoIterator<Item = SocketAddr>) -> Result<()> {
        for address in listeners {
            if !address.ip().is_loopback() && !self.i_know_this_is_open {
                bail!(
                    "listener without authentication: {address} is not loopback\n  \
                     hint: add --i-know-this-is-open to allow it"
                );
            }
        }
        Ok(())
    }

    /// The rule for host names of containers.
    pub(crate) fn container_names(&self) -> ContainerNames {
        match self.i_know_this_is_open {
            true => ContainerNames::Accepted,
            false => ContainerNames::Rejected,
        }
    }
}
